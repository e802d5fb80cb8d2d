extern void fast_topk_interface(at::Tensor score, at::Tensor indices, at::Tensor lengths);
extern void fast_topk_interface(
    const at::Tensor& score, at::Tensor& indices, const at::Tensor& lengths, std::optional<at::Tensor> row_starts_opt);
