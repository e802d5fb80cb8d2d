#!/bin/sh
# usage: install_torch.sh FOLDER
# Puts a real torch into FOLDER, with a Python of its own: FOLDER/python runs it, FOLDER/include and FOLDER/lib are for a
# C++ compiler.
# Does nothing when FOLDER is there. Needs no root and changes nothing outside FOLDER.
#
# Where it comes from: Debian's unstable, through the mirror that apt here is set up for; the packages are unpacked, not
# installed. That is 264 MB to fetch and 1.2 GB on disk (torch 2.14.1, CPU only), 20 to 30 s on two cores. PyPI was
# measured too: torch 2.15.0's wheel (539 MB) cannot be imported without the wheels of cublas, cudnn, cufft, cufile,
# cupti, cusolver, cusparse, cusparselt, nccl, nvjitlink, nvrtc, nvshmem and the runtime, 2.5 GB to fetch and 4.2 GB on
# disk, more than the 3 GB that this test may take.
set -eu
folder=$1
[ -x "$folder/python" ] && exit 0

say() {
  echo "install_torch: $*" >&2
  exit 1
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || say "needs apt-get and dpkg-deb"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] || say "needs the keys of Debian's archive: $keys"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep -m 1 '/debian/*$') ||
  say "apt is set up for no Debian mirror"

mkdir -p "$(dirname "$folder")"
part=$(mktemp -d "$folder.XXXXXX")
part=$(CDPATH= cd -- "$part" && pwd)
trap 'rm -rf "$part"' EXIT
apt=$part/apt root=$part/root
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$root"
echo "deb [signed-by=$keys] $mirror sid main" >"$apt/sources.list"
: >"$apt/status"

# Unstable's release file may be past its date on a mirror that is a snapshot.
private() {
  apt-get -q -y -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" -o Debug::NoLocking=true \
    -o APT::Update::Error-Mode=any -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none \
    -o Acquire::Retries=2 -o APT::Sandbox::User= "$@" \
    >>"$apt/log" 2>&1 || say "apt-get: $(grep -m 1 '^E:' "$apt/log" || tail -n 1 "$apt/log")"
}
private update
private install --no-install-recommends --download-only python3-torch libc6
(cd "$apt/archives" && private download libtorch-dev)
for package in "$apt"/archives/*.deb; do
  dpkg-deb -x "$package" "$root" || say "cannot unpack $package"
done
rm -rf "$apt/archives" "$apt/lists" "$root/usr/share/doc" "$root/usr/share/locale"

# Torch's alone, so that a compiler of this machine does not take the C library from there as well.
mkdir "$part/include" "$part/lib"
for headers in ATen c10 caffe2 torch; do
  ln -s "../root/usr/include/$headers" "$part/include/$headers"
done
for library in "$root"/usr/lib/*-linux-gnu/libtorch_cpu.so "$root"/usr/lib/*-linux-gnu/libc10.so; do
  ln -s "../${library#"$part/"}" "$part/lib/${library##*/}"
done

# The loader and the C library from there start the Python from there: its glibc is newer than this machine's.
cat >"$part/python" <<'PYTHON'
#!/bin/sh
root=$(CDPATH= cd -- "$(dirname -- "$0")/root" && pwd)
for loader in "$root"/usr/lib/*-linux-gnu/ld-linux-*.so.*; do
  libraries=${loader%/*}
done
unset LD_LIBRARY_PATH PYTHONPATH
export PYTHONHOME="$root/usr"
exec "$loader" --argv0 python3 --library-path "$libraries:$libraries/blas:$libraries/lapack:$root/usr/lib" "$root"/usr/bin/python3 "$@"
PYTHON
chmod +x "$part/python"
"$part/python" -c 'import torch' 2>"$apt/log" || say "what was unpacked does not import: $(tail -n 1 "$apt/log")"
rm -rf "$apt"
chmod 755 "$part"
mv -T "$part" "$folder" 2>/dev/null || [ -x "$folder/python" ] || say "cannot write $folder"
