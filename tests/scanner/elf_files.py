"""ELF files for tests: made by the compiler, once each, and a writer of small ones for what no compiler here makes."""
import functools, os, pathlib, struct, subprocess, tempfile

ROUTER = "_Z16dsv3_router_gemmRN2at6TensorERKS0_S3_"
FUSED = "_Z17dsv3_fused_a_gemmRN2at6TensorERKS0_S3_"
ROW = "dsv3_router_gemm\tneeds\n"
HEAD = "namespace at { class Tensor; }\nusing T = at::Tensor;\nvoid dsv3_router_gemm(T &o, const T &a, const T &b);\n"
USER = HEAD + "void user(T &o, const T &a) { dsv3_router_gemm(o, a, a); }\n"
OWNER = HEAD + "void dsv3_router_gemm(T &, const T &, const T &) {}\n"


@functools.cache
def compiled(source, *options, name="x.so", program=False):
    """The bytes of a shared object without any library, unless the options say otherwise; of an object file (name="x.o"); of a program."""
    with tempfile.TemporaryDirectory() as folder:
        code = pathlib.Path(folder) / "x.cc"
        code.write_text(source)
        out = pathlib.Path(folder) / name
        mode = ["-c"] if name.endswith(".o") else [] if program else ["-shared", "-nostdlib"]
        subprocess.run([os.environ.get("CXX", "g++"), "-O1", "-fPIC", *mode, "-o", out, code, *options], check=True, cwd=folder, timeout=60)
        return out.read_bytes()


def user(*options):
    return compiled(USER, *options)


class Elf:
    """A library with one segment, a dynamic section, and no section headers unless `sections` gives some."""

    def __init__(self, undefined=(ROUTER,), big=False, machine=62, sections=(), needed=(), tail=b""):
        self.end = ">" if big else "<"
        names = b"\0" + b"".join(n.encode() + b"\0" for n in (*undefined, *needed))
        at = lambda n: names.index(b"\0" + n.encode() + b"\0") + 1
        symbols = bytes(24) + b"".join(self.pack("IBBHQQ", at(n), 0x12, 0, 0, 0, 0) for n in undefined)
        dynamic_at, symbols_at = 64 + 2 * 56, 64 + 2 * 56 + 16 * (6 + len(needed))
        hash_at = symbols_at + len(symbols)
        table = self.pack("II", 1, len(undefined) + 1) + self.pack("I" * (len(undefined) + 2), *([0] * (len(undefined) + 2)))
        names_at = hash_at + len(table)
        entries = [(1, at(n)) for n in needed] + [(5, names_at), (10, len(names)), (6, symbols_at), (11, 24), (4, hash_at), (0, 0)]
        dynamic = b"".join(self.pack("qQ", *e) for e in entries)
        size = names_at + len(names)
        segments = self.pack("IIQQQQQQ", 1, 4, 0, 0, 0, size, size, 4096) + self.pack("IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
        body = segments + dynamic + symbols + table + names
        self.tail_at = 64 + len(body)
        headers = b"".join(self.pack("IIQQQQIIQQ", *s) for s in sections)
        headers_at = self.tail_at + len(tail) if sections else 0
        ident = b"\x7fELF" + bytes([2, 2 if big else 1, 1]) + bytes(9)
        self.bytes = ident + self.pack("HHIQQQIHHHHHH", 3, machine, 1, 0, 64, headers_at, 0, 64, 56, 2, 64, len(sections), 0) + body + tail + headers

    def pack(self, form, *values):
        return struct.pack(self.end + form, *values)


def patched(data, *changes):
    """The bytes with (offset, format, value) written over them."""
    out = bytearray(data)
    for offset, form, value in changes:
        struct.pack_into("<" + form, out, offset, value)
    return bytes(out)
