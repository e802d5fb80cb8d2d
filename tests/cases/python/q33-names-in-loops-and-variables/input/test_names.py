import sgl_kernel, pytest
@pytest.mark.parametrize("name, x", [
    ("dsv3_router_gemm", 1),
    ("merge_state_v2", 2)])
def test(name, x): getattr(sgl_kernel, name)(x)
