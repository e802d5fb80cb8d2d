from app.kernels import sk
