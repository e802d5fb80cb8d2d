/* Messages that are about no name of the catalog: of the loader, of Python, of torch, CUDA and compilers, as they come
 * when the kernel package does not fit what is around it. One table; the rows follow public bug reports. */
#include "scanner/audit.h"
#include "scanner/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_TORCH                                                                                                    \
  "install the kernel release that is made for this torch, or the torch that it names; a library of your own has to "  \
  "be compiled again. Another order of imports does not help."
#define OTHER_CUDA                                                                                                     \
  "install the wheel that is made for the CUDA release of the installed torch (torch.version.cuda says which), and "   \
  "import torch first: it loads the CUDA libraries of its own packages."
#define BROKEN_FILE "install the package again (pip install --force-reinstall --no-deps), with enough room on the disk."
#define CONTAINER_BASE                                                                                                 \
  "use a base image or distribution that is as new, or a wheel for an older one (its manylinux tag says the glibc)."

#define CUDA_VERSION_CAUSE                                                                                             \
  "The library needs {}, and the file that the process has loaded under that name is of another CUDA release."
#define NO_CODE_CAUSE "The library has neither machine code nor PTX for the architecture of this GPU."
#define NO_CODE_REMEDY                                                                                                 \
  "install the wheel that has it (sgl-migrate audit FILE lists what a library has), or use the JIT kernels, which "    \
  "are "                                                                                                               \
  "compiled for the GPU that is there."
#define CAPTURE_CAUSE "Something in the captured code allocates, synchronizes, or loads a kernel for the first time."
#define CAPTURE_REMEDY                                                                                                 \
  "call each operator once before the capture (sgl-jit warm fills the cache, one call loads the kernel)."
#define NO_NVCC_CAUSE "A JIT wants nvcc at run time, and the image has no CUDA toolkit."
#define NO_NVCC_REMEDY "use a devel image, put nvcc into PATH, or use kernels that are compiled by NVRTC or beforehand."

enum where { ALONE, WORD_BEFORE, WORD_AFTER };

/* What is in a message, and where the word is that decides: before the mark, or behind it. {} in a text is that word.
 * The first row whose mark is there and whose word begins with `word` decides; with a $ at its end it is the whole. */
static const struct row {
  enum where where;
  const char *mark, *word;
  const char *title, *cause, *remedy;
  bool consequence; /* says nothing when another fault or a name is found */
} rows[] = {
/* libraries that the loader does not find */
#define NOT_FOUND(library, cause, remedy)                                                                              \
  { WORD_BEFORE, "cannot open", library, "a library that is not found", cause, remedy, false }
    NOT_FOUND("libnvrtc-builtins", "NVRTC was found without {}, its other half, which must have the same version.",
              "take both from one package: nvidia-cuda-nvrtc-cu12 for CUDA 12, nvidia-cuda-nvrtc for CUDA 13."),
    NOT_FOUND("libnvrtc", "{} is the run-time compiler of one CUDA release; the machine has that of another, or none.",
              OTHER_CUDA
              " The library alone comes with nvidia-cuda-nvrtc-cu12 (CUDA 12) or nvidia-cuda-nvrtc (CUDA 13)."),
    NOT_FOUND("libcudart", "{} is the runtime of one CUDA release; the machine has that of another, or none.",
              OTHER_CUDA),
    NOT_FOUND("libcuda.so",
              "{} belongs to the NVIDIA driver, which is not there: no driver, a container that was "
              "started without the GPU, or a machine with other GPUs.",
              "install the driver, or start the container with the GPU (docker run --gpus all). On AMD, Intel, Moore "
              "Threads and CPU machines install the kernel package of that platform, not the CUDA wheel."),
    NOT_FOUND("libnuma", "{} is a system library that the kernel package needs and pip cannot install.",
              "apt install libnuma1, or dnf install numactl-libs."),
    NOT_FOUND("libtorch_cuda", "{} is in torch's CUDA builds only; the installed torch is another build.",
              "install a CUDA build of torch, or the kernel package of this platform."),
    NOT_FOUND("libc10_cuda", "{} is in torch's CUDA builds only; the installed torch is another build.",
              "install a CUDA build of torch, or the kernel package of this platform."),
    NOT_FOUND("libtorch", "{} is torch's own; the loader knows it only when torch was imported before.",
              "import torch first; a program without Python needs torch's lib folder in its RUNPATH."),
    NOT_FOUND("libc10", "{} is torch's own; the loader knows it only when torch was imported before.",
              "import torch first; a program without Python needs torch's lib folder in its RUNPATH."),
    NOT_FOUND("libcu", "{} is a library of one CUDA release; the machine has that of another, or none.", OTHER_CUDA),
    NOT_FOUND("libnv", "{} is a library of one CUDA release; the machine has that of another, or none.", OTHER_CUDA),
    NOT_FOUND("libamdhip", "{} is of ROCm: the installed package was made for AMD GPUs.",
              "install the kernel package of this platform."),
    NOT_FOUND("libmusa", "{} is of MUSA: the installed package was made for Moore Threads GPUs.",
              "install the kernel package of this platform."),
    {WORD_AFTER, "failed to open ", "libnvrtc-builtins", "a library that is not found",
     "NVRTC was found without {}, its other half, which must have the same version.",
     "take both from one package: nvidia-cuda-nvrtc-cu12 for CUDA 12, nvidia-cuda-nvrtc for CUDA 13.", false},
    {WORD_BEFORE, "cannot open shared object file", "", "a library that is not found",
     "The loader does not find {} in the RUNPATH of the library that needs it, in LD_LIBRARY_PATH or in the folders of "
     "the system.",
     "install the package that has it; sgl-migrate audit of the library that needs it says which others are missing.",
     false},
    /* files that are no library for this machine */
    {WORD_BEFORE, "file too short", "", "a broken library", "{} is cut off: an interrupted download or a full disk.",
     BROKEN_FILE, false},
    {WORD_BEFORE, "invalid ELF header", "", "a broken library",
     "{} is no library: often a pointer file of Git LFS, or a broken download.", BROKEN_FILE, false},
    {WORD_BEFORE, "wrong ELF class", "", "a library of another machine", "{} is for another word size.",
     "install the wheel of this machine (uname -m).", false},
    {WORD_BEFORE, "cannot allocate memory in static TLS block", "", "no room for a library that is loaded late",
     "{} has thread-local variables that must be there from the start.",
     "import the package earlier, or name the library in LD_PRELOAD.", false},
    /* versions of the system's libraries */
    {WORD_AFTER, "version ", "GLIBCXX_", "an older system than the library's",
     "The library was compiled with a newer GCC: the libstdc++ that the process has lacks {}.",
     "upgrade libstdc++ (apt install libstdc++6 from a newer release, or conda install libstdcxx-ng): an environment "
     "often brings an older one that comes first. " CONTAINER_BASE,
     false},
    {WORD_AFTER, "version ", "CXXABI_", "an older system than the library's",
     "The library was compiled with a newer GCC: the libstdc++ that the process has lacks {}.",
     "upgrade libstdc++ as for GLIBCXX. " CONTAINER_BASE, false},
    {WORD_AFTER, "version ", "GLIBC_", "an older system than the library's",
     "The library was linked on a newer distribution: the glibc of this one lacks {}.",
     "glibc cannot be exchanged: " CONTAINER_BASE, false},
    {WORD_AFTER, "version `", "libcu", "two CUDA releases in one process", CUDA_VERSION_CAUSE, OTHER_CUDA, false},
    {WORD_AFTER, "version `", "libnv", "two CUDA releases in one process", CUDA_VERSION_CAUSE, OTHER_CUDA, false},
/* symbols */
#define UNDEFINED(word, cause, remedy)                                                                                 \
  { WORD_AFTER, "undefined symbol: ", word, "a symbol that nothing defines", cause, remedy, false }
    UNDEFINED("c10_cuda_check_implementation",
              "{} is a private function of torch, whose parameters change from release to release: the library was "
              "compiled for another one.",
              OTHER_TORCH),
    UNDEFINED("aoti_torch_",
              "{} is of torch's stable ABI, which only grows: the library was compiled for a newer torch than the "
              "installed one.",
              "upgrade torch to the release that the library names, or a newer one."),
    UNDEFINED("TVMFFI", "{} is of tvm-ffi, whose ABI is young: the library was compiled for another release of it.",
              "install the release of apache-tvm-ffi that the package names."),
    UNDEFINED("__nvJitLink", "{} joins two CUDA libraries of different releases in one process.", OTHER_CUDA),
    UNDEFINED("cublas", "{} is missing in the cuBLAS that the process has loaded: it is of another CUDA release.",
              OTHER_CUDA),
    UNDEFINED("cuda", "{} is missing in the CUDA runtime that the process has loaded: it is of another CUDA release.",
              OTHER_CUDA),
    UNDEFINED("nccl", "{} is missing in the NCCL that the process has loaded: two releases of it are installed.",
              "uninstall the one that torch does not name, and look for libnccl in LD_LIBRARY_PATH."),
    UNDEFINED("_Py", "{} is of Python: the library was compiled for another Python release.",
              "install the wheel of this Python (its cp tag)."),
    UNDEFINED("Py", "{} is of Python: the library was compiled for another Python release.",
              "install the wheel of this Python (its cp tag)."),
    /* the kernel package and its torch operators */
    {WORD_AFTER, "No module named ", EXTENSION "$", "the compiled part of the kernel package",
     "The compiled part of the kernel package did not load. This line follows from the first error, which stands "
     "above it or was swallowed.",
     "import torch; then import the package's compiled file (*.so) with ctypes.CDLL: that prints the first error.",
     true},
    {ALONE, "ould not load any " EXTENSION, "", "the compiled part of the kernel package",
     "The compiled part of the kernel package did not load. This line follows from the first error, which stands "
     "below it or was swallowed.",
     "paste the whole message; without more, import the package's compiled file (*.so) with ctypes.CDLL after torch: "
     "that prints the first error.",
     true},
    {ALONE, "Only a single TORCH_LIBRARY can be used to register the namespace", "", "two libraries of one namespace",
     "Two libraries in this process define the same operator namespace: two copies of the kernel package, or an "
     "extension that takes its name.",
     "uninstall one (pip list | grep -i kernel); an extension has to use TORCH_LIBRARY_FRAGMENT or a namespace of its "
     "own.",
     false},
    {WORD_BEFORE, "() expected at most", "", "another signature",
     "The operator takes fewer arguments than the caller gives: its schema is of another release, or of another "
     "platform's package.",
     "install the kernel release that the caller pins; sgl-migrate explain NAME tells the signatures.", false},
    {ALONE, "Torch not compiled with CUDA enabled", "", "a torch without CUDA",
     "The installed torch is a CPU build, often pulled in by another package.", "install torch from its CUDA index.",
     false},
    /* the driver and the GPU */
    {ALONE, "no kernel image is available", "", "no code for this GPU", NO_CODE_CAUSE, NO_CODE_REMEDY, true},
    {ALONE, "NoKernelImageForDevice", "", "no code for this GPU", NO_CODE_CAUSE, NO_CODE_REMEDY, true},
    {ALONE, "NO_BINARY_FOR_GPU", "", "no code for this GPU", NO_CODE_CAUSE, NO_CODE_REMEDY, true},
    {ALONE, "unsupported toolchain", "", "an older driver", "The PTX was made by a newer CUDA than the driver knows.",
     "upgrade the driver, or use an NVRTC of the driver's CUDA release or an older one.", false},
    {ALONE, "driver version is insufficient", "", "an older driver",
     "The driver is older than the CUDA runtime of the installed packages.",
     "upgrade the driver, or install torch and the kernel package for an older CUDA release (nvidia-smi shows the "
     "newest one that the driver knows).",
     false},
    {ALONE, "stream is capturing", "", "work that a CUDA graph cannot hold", CAPTURE_CAUSE, CAPTURE_REMEDY, false},
    {ALONE, "StreamCapture", "", "work that a CUDA graph cannot hold", CAPTURE_CAUSE, CAPTURE_REMEDY, false},
    {ALONE, "error during capture", "", "work that a CUDA graph cannot hold", CAPTURE_CAUSE, CAPTURE_REMEDY, false},
    {ALONE, "STREAM_CAPTURE", "", "work that a CUDA graph cannot hold", CAPTURE_CAUSE, CAPTURE_REMEDY, false},
    {ALONE, "Stale file handle", "", "a cache on a network file system",
     "A file was replaced by another machine while this one had it open, as in a compile cache on NFS that many start "
     "on.",
     "put the cache on a local disk of each machine, or ship compiled kernels (sgl-jit pack).", false},
    {ALONE, "(unknown location)", "", "a folder that is left of a package",
     "Python has imported a folder without __init__.py: what is left of an uninstalled or broken package.",
     "delete the folder and install the package again; sgl-migrate doctor names it.", false},
    /* compilers at run time */
    {ALONE, "nvcc: not found", "", "no compiler", NO_NVCC_CAUSE, NO_NVCC_REMEDY, false},
    {ALONE, "nvcc: command not found", "", "no compiler", NO_NVCC_CAUSE, NO_NVCC_REMEDY, false},
    {ALONE, "ould not find nvcc", "", "no compiler", NO_NVCC_CAUSE, NO_NVCC_REMEDY, false},
    {ALONE, "No such file or directory: 'nvcc'", "", "no compiler", NO_NVCC_CAUSE, NO_NVCC_REMEDY, false},
    {ALONE, "/bin/nvcc'", "", "no compiler", NO_NVCC_CAUSE, NO_NVCC_REMEDY, false},
    {ALONE, "cannot find -lcuda", "", "a library that the linker does not find",
     "The linker looks for the driver or the runtime in a folder that is not there: pip's CUDA packages have lib, the "
     "toolkit has lib64, and a machine without driver only has lib64/stubs.",
     "add that folder to LIBRARY_PATH.", false},
    {ALONE, "function \"rsqrt", "", "a CUDA older than the system's glibc",
     "glibc 2.41 and newer declare rsqrt with another exception specification than the CUDA headers do.",
     "upgrade the CUDA toolkit, or compile in an image with an older glibc.", false},
};
#define ROWS (sizeof rows / sizeof *rows)

/* --- names of torch ------------------------------------------------------------------------------------------------
 */

#define TORCH_TITLE "a symbol of torch"

/* Does the symbol itself belong to torch? Its parameters say nothing. */
static bool is_torch(const char *name) {
  static const char *const owners[] = {"at::", "c10::", "torch::", "caffe2::", "c10d::"};
  for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
    if (strncmp(name, owners[i], strlen(owners[i])) == 0)
      return true;
  return audit_is_torch(name) || audit_is_torch_else(name);
}

static const char *torch_cause(const char *name) {
  int strings = audit_cxx_abi(name);
  if (!is_torch(name))
    return NULL;
  if (strings > 0)
    return "{} belongs to torch, not to the kernel package, and has strings of the C++11 ABI: the library was compiled "
           "for a torch with that ABI (the wheels of PyPI have it since 2.7); the installed one has the old ABI, or is "
           "of "
           "another release.";
  if (strings < 0)
    return "{} belongs to torch, not to the kernel package, and has strings of the old C++ ABI: the library was "
           "compiled for a torch without the C++11 ABI (the wheels of PyPI had the old one up to 2.5, most of 2.6 "
           "too); "
           "the installed one has the new ABI.";
  return "{} belongs to torch, not to the kernel package: the library was built for another torch release.";
}

/* --- reading -------------------------------------------------------------------------------------------------------
 */

static bool ends_word(char c) {
  return !c || strchr(" \t\r\n'\"`,;()[]<>", c) != NULL;
}

static char *with_word(const char *text, const char *word, size_t length) {
  const char *gap = strstr(text, "{}");
  if (!gap)
    return scan_format("%s", text);
  return scan_format("%.*s%.*s%s", (int)(gap - text), text, (int)length, word, gap + 2);
}

static void add(struct explanation *explanation, const char *title, const char *cause, const char *remedy,
                bool consequence, const char *word, size_t length) {
  char *told = with_word(cause, word, length);
  for (size_t i = 0; i < explanation->faults_count; i++)
    if (strcmp(explanation->faults[i].cause, told) == 0) {
      free(told);
      return;
    }
  explanation->faults = scan_alloc(explanation->faults, (explanation->faults_count + 1) * sizeof *explanation->faults);
  explanation->faults[explanation->faults_count++] = (struct explained_fault){title, told, remedy, consequence};
}

static bool fits(const struct catalog_library *library, const struct row *row, const char *text, const char *at,
                 const char **word, size_t *length) {
  size_t mark = explain_pattern(library, row->mark, at);
  if (!mark)
    return false;
  const char *start = at, *end = at;
  if (row->where == WORD_BEFORE) {
    while (start > text && strchr(": ", start[-1]))
      start--;
    end = start;
    while (start > text && !ends_word(start[-1]) && start[-1] != ':')
      start--;
  } else if (row->where == WORD_AFTER) {
    start = at + mark;
    start += strchr("'\"`", *start) && *start;
    for (end = start; !ends_word(*end);)
      end++;
    if (end > start && strchr(".:", end[-1]))
      end--;
  }
  const char *base = start; /* of a path, the file's name decides */
  for (const char *c = start; row->where == WORD_BEFORE && c < end; c++)
    if (*c == '/')
      base = c + 1;
  *word = start;
  *length = (size_t)(end - start);
  char beginning[100];
  bool whole = strchr(row->word, '$') != NULL;
  snprintf(beginning, sizeof beginning, "%.*s", (int)strcspn(row->word, "$"), row->word);
  size_t wanted = explain_pattern(library, beginning, base);
  return (wanted || !*beginning) && (!whole || base + wanted == end) && (row->where == ALONE || end > start);
}

void explain_symbol(struct explanation *explanation, const char *name, size_t length) {
  char *word = scan_format("%.*s", (int)length, name);
  const char *cause = torch_cause(word);
  if (cause)
    add(explanation, TORCH_TITLE, cause, OTHER_TORCH, false, name, length);
  else if (explanation->faults_count == 0)
    add(explanation, "a symbol that nothing defines",
        "{} is neither torch's nor a function of the catalog: the library that has it was not loaded, or is of another "
        "release.",
        "sgl-migrate audit of the library that needs it says where it was looked for.", false, name, length);
  free(word);
}

void explain_alive(struct explanation *explanation, const char *name, size_t length) {
  add(explanation, "a name that has not left",
      "Every known release for CUDA has {}: what is installed is older, made for another platform, or broken.",
      "sgl-migrate doctor says which distribution provides the package, and what of it is missing.", false, name,
      length);
}

/* "No module named 'sgl_kernel'": no distribution at all. */
static void no_package(const struct catalog_library *library, struct explanation *explanation) {
  char *cause = scan_format("No installed distribution provides {}. It comes with");
  for (unsigned i = 0; i < library->distributions_count; i++) {
    char *longer = scan_format("%s%s %s", cause, i ? "," : "", library->distributions[i]);
    free(cause);
    cause = longer;
  }
  add(explanation, "the package is not installed", cause,
      "pip install the one of this platform, in the release that the caller pins.", false, library->package,
      strlen(library->package));
  free(cause);
}

void explain_faults(const struct catalog *catalog, const char *text, struct explanation *explanation) {
  const struct catalog_library *library = &catalog->library;
  const struct row package = {WORD_AFTER, "No module named ", PACKAGE "$", NULL, NULL, NULL, false};
  for (const char *at = text; *at; at++) {
    const char *word;
    size_t length;
    if (fits(library, &package, text, at, &word, &length))
      no_package(library, explanation);
    for (size_t i = 0; i < ROWS; i++) {
      if (!fits(library, &rows[i], text, at, &word, &length))
        continue;
      add(explanation, rows[i].title, rows[i].cause, rows[i].remedy, rows[i].consequence, word, length);
      break;
    }
  }
}

/* What only follows from another fault is worth a word when it is all there is. */
void explain_drop_consequences(struct explanation *explanation) {
  bool cause = explanation->count > 0;
  for (size_t i = 0; i < explanation->faults_count; i++)
    cause = cause || !explanation->faults[i].consequence;
  size_t kept = 0;
  for (size_t i = 0; i < explanation->faults_count; i++) {
    if (cause ? explanation->faults[i].consequence : kept > 0)
      free(explanation->faults[i].cause);
    else
      explanation->faults[kept++] = explanation->faults[i];
  }
  explanation->faults_count = kept;
}
