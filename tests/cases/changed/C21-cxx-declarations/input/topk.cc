extern void fast_topk_interface(at::Tensor score, at::Tensor indices, at::Tensor lengths);
extern void fast_topk_interface(
    const at::Tensor& score, at::Tensor& indices, const at::Tensor& lengths, std::optional<at::Tensor> row_starts_opt);
extern void fast_topk_interface(
    at::Tensor const& score, at::Tensor& indices, at::Tensor const& lengths, std::optional<at::Tensor> row_starts_opt);
