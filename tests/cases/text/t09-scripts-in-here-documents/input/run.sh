ssh host bash -s <<'EOF'
python - <<PY
from sgl_kernel import dsv3_router_gemm
PY
# dsv3_router_gemm
EOF
sbatch <<EOF
#!/bin/bash
python -c 'import sgl_kernel; sgl_kernel.dsv3_fused_a_gemm()'
EOF
cat <<EOF
sgl_kernel.dsv3_router_gemm is gone
EOF
