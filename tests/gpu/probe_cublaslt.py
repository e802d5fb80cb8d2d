#!/usr/bin/env python3
"""Asks the real cuBLASLt which descriptions of an FP8 product it takes. Not a test: it shows why one is refused.

    python3 tests/gpu/probe_cublaslt.py [FILE]      FILE: libcublasLt.so.13, else the one that torch has loaded

Each line is one variation of what jit/bmm.c says: the status of the heuristic, the algorithms found, the status of the
product, and its largest error against float32."""
import ctypes
import re
import sys
import torch

E4M3, E5M2, BF16, FP16, F32 = 28, 29, 14, 2, 0
TYPES = {E4M3: torch.float8_e4m3fn, E5M2: torch.float8_e5m2, BF16: torch.bfloat16, FP16: torch.float16}


def library():
    if len(sys.argv) > 1:
        return sys.argv[1]
    torch.zeros(16, 16, device="cuda") @ torch.zeros(16, 16, device="cuda")
    return re.search(r"\S*libcublasLt\.so\S*", open("/proc/self/maps").read()).group()


class Result(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


class Lt:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("cublasLtMatmulDescInit_internal", "cublasLtMatrixLayoutInit_internal"):
            getattr(self.c, name).restype = ctypes.c_int
        self.c.cublasLtGetVersion.restype = ctypes.c_size_t
        self.handle = ctypes.c_void_p()
        print("cuBLASLt", self.c.cublasLtGetVersion(), path, "create:", self.c.cublasLtCreate(ctypes.byref(self.handle)))

    def set(self, what, where, attribute, value):
        status = getattr(self.c, f"cublasLt{what}SetAttribute")(where, attribute, ctypes.byref(value),
                                                                ctypes.c_size_t(ctypes.sizeof(value)))
        if status:
            print(f"    {what} attribute {attribute}: status {status}")

    def layout(self, kind, rows, columns, batch, fill, stride=None):
        memory = (ctypes.c_uint64 * 8)(*[fill] * 8)
        self.c.cublasLtMatrixLayoutInit_internal(memory, ctypes.c_size_t(64), kind, ctypes.c_uint64(rows),
                                                 ctypes.c_uint64(columns), ctypes.c_int64(rows))
        self.set("MatrixLayout", memory, 5, ctypes.c_int32(batch))
        self.set("MatrixLayout", memory, 6, ctypes.c_int64(rows * columns if stride is None else stride))
        return memory

    def product(self, batch=4, m=20, n=64, k=128, a_type=E4M3, b_type=E4M3, out=BF16, fill=0, create=False, trans_b=False,
                fast=1, scale_modes=False, scales=True, scale_past=(0, 0), alignment=256, workspace=32 << 20, past=0,
                d_scale=None, compute=68, run=True, init_size=256):
        g = torch.Generator(device="cuda").manual_seed(1)
        def operand(rows, kind):
            x = torch.randn(batch * rows * k, device="cuda", generator=g).to(TYPES[kind])
            raw = torch.zeros(batch * rows * k + 512, dtype=torch.uint8, device="cuda")
            raw[past:past + batch * rows * k] = x.view(torch.uint8)
            return x.float().view(batch, rows, k), raw
        a, a_raw = operand(m, a_type)
        b, b_raw = operand(n, b_type)
        output = torch.zeros(batch * m * n * 2 + 512, dtype=torch.uint8, device="cuda")
        scale_memory = torch.zeros(256, device="cuda")
        pointers = [scale_memory.data_ptr() + scale_past[0], scale_memory.data_ptr() + 512 + scale_past[1]]
        scale_memory[scale_past[0] // 4] = 0.5
        scale_memory[128 + scale_past[1] // 4] = 0.25
        desc = (ctypes.c_uint64 * 32)(*[fill] * 32)
        if create:
            desc = ctypes.c_void_p()
            status = self.c.cublasLtMatmulDescCreate(ctypes.byref(desc), compute, F32)
        else:
            status = self.c.cublasLtMatmulDescInit_internal(desc, ctypes.c_size_t(init_size), compute, F32)
        if status:
            return f"desc init: {status}"
        self.set("MatmulDesc", desc, 3, ctypes.c_int32(1))
        if trans_b:
            self.set("MatmulDesc", desc, 4, ctypes.c_int32(0))
        if fast is not None:
            self.set("MatmulDesc", desc, 25, ctypes.c_int8(fast))
        if scales:
            self.set("MatmulDesc", desc, 17, ctypes.c_void_p(pointers[0]))
            self.set("MatmulDesc", desc, 18, ctypes.c_void_p(pointers[1]))
        if scale_modes:
            for attribute in (31, 32, 33, 34):
                self.set("MatmulDesc", desc, attribute, ctypes.c_int32(0))
        la, lb, ld = (self.layout(b_type, k, n, batch, fill), self.layout(a_type, k, m, batch, fill),
                      self.layout(out, n, m, batch, fill))
        preference = (ctypes.c_uint64 * 8)(*[fill] * 8)
        self.c.cublasLtMatmulPreferenceInit_internal(preference, ctypes.c_size_t(64))
        self.set("MatmulPreference", preference, 1, ctypes.c_uint64(workspace))
        if alignment:
            for attribute in (5, 6, 7, 8):
                self.set("MatmulPreference", preference, attribute, ctypes.c_uint32(alignment))
        results, count = (Result * 8)(), ctypes.c_int()
        status = self.c.cublasLtMatmulAlgoGetHeuristic(self.handle, desc, la, lb, ld, ld, preference, 8, results,
                                                       ctypes.byref(count))
        text = f"heuristic {status}, {count.value} found"
        if status or not count.value or not run:
            return text
        text += f", state {results[0].state}, workspace {results[0].workspace}"
        memory = torch.empty(max(workspace, 1), dtype=torch.uint8, device="cuda")
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        def at(tensor, offset=0):
            return ctypes.c_void_p(tensor.data_ptr() + offset)
        status = self.c.cublasLtMatmul(self.handle, desc, ctypes.byref(one), at(b_raw, past), la, at(a_raw, past), lb,
                                       ctypes.byref(zero), at(output, past), ld, at(output, past), ld,
                                       ctypes.byref(results[0]), at(memory), ctypes.c_size_t(workspace),
                                       ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        torch.cuda.synchronize()
        want = a @ b.transpose(1, 2) * (0.125 if scales else 1)
        have = output[past:past + batch * m * n * 2].clone().view(TYPES[out]).float().view(batch, m, n)
        return text + f", product {status}, error {(have - want).abs().max() / want.abs().max():.1e}"

    def ok(self, **what):
        text = self.product(**what)
        return "product 0" in text and float(text.rsplit(" ", 1)[1]) < 0.02


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    print("torch", torch.__version__, torch.cuda.get_device_name(), "driver", end=" ")
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    print(version.value)
    one = torch.ones((), device="cuda")
    for m, n, k in ((32, 64, 128), (20, 64, 128), (1, 64, 1024), (16, 8, 128), (5, 24, 64), (16, 136, 128)):
        a, b = (torch.ones(r, k, device="cuda").to(torch.float8_e4m3fn) for r in (m, n))
        try:
            text = str(torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                        use_fast_accum=True).float().mean().item())
        except Exception as error:
            text = str(error).splitlines()[0]
        print(f"torch._scaled_mm {m} x {n} x {k}: {text}")
    lt = Lt(library())
    for what in (dict(), dict(fill=0xaaaaaaaaaaaaaaaa), dict(fill=0x0101010101010101), dict(create=True),
                 dict(create=True, fill=0xaaaaaaaaaaaaaaaa), dict(trans_b=True), dict(scale_modes=True), dict(fast=0),
                 dict(fast=None), dict(scales=False), dict(scale_past=(0, 4)), dict(scale_past=(4, 0)), dict(scale_past=(4, 4)),
                 dict(scale_past=(0, 8)), dict(scale_past=(8, 8)), dict(scale_past=(0, 16)), dict(scale_past=(16, 16)),
                 dict(scale_past=(32, 32)), dict(alignment=16), dict(alignment=0), dict(alignment=128),
                 dict(workspace=0), dict(workspace=4096), dict(workspace=1 << 20), dict(batch=1), dict(batch=1, m=1, k=1024),
                 dict(batch=1, m=1, k=1024, workspace=0), dict(m=16), dict(m=32), dict(m=128, n=128), dict(m=1), dict(out=FP16),
                 dict(a_type=E5M2), dict(b_type=E5M2), dict(a_type=E5M2, b_type=E5M2), dict(n=8), dict(n=24), dict(n=40),
                 dict(n=136), dict(k=16), dict(k=80), dict(k=144), dict(past=16, alignment=16), dict(past=8, alignment=8),
                 dict(past=4, alignment=4), dict(batch=2, m=8, k=64, workspace=0), dict(init_size=512),
                 dict(init_size=224), dict(init_size=192), dict(init_size=128)):
        try:
            print(f"{what or 'as jit/bmm.c, memory zeroed, scales aligned'}: {lt.product(**what)}", flush=True)
        except Exception as error:
            print(f"{what}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
            torch.cuda.synchronize()
    # Which shapes are refused: a line for each n and k, with the m of the refused ones.
    for out, workspace, alignment in ((BF16, 32 << 20, 256), (FP16, 32 << 20, 256), (BF16, 0, 256), (BF16, 32 << 20, 16)):
        print(f"output {out}, workspace {workspace}, alignment {alignment}; refused or wrong:")
        for batch in (1, 3):
            for n in (8, 16, 24, 32, 40, 48, 64, 136, 192):
                for k in (16, 32, 48, 64, 80, 128, 144):
                    bad = [m for m in (1, 2, 5, 8, 9, 15, 16, 20, 33, 64)
                           if not lt.ok(batch=batch, m=m, n=n, k=k, out=out, workspace=workspace, alignment=alignment)]
                    if bad:
                        print(f"  batch {batch}, n {n}, k {k}: m {bad}")


main()
