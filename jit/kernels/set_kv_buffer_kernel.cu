// k_cache[loc[t]] = k[t] and v_cache[loc[t]] = v[t], as bytes. A thread moves one piece of a row of each at a time. What is
// beyond the slots is not written.
constexpr int THREADS = 256;
#include <elements.cuh>

INLINE long long slot_of(const store_kv &p, long long token) {
  return p.is_wide ? static_cast<const long long *>(p.loc)[token] : static_cast<const int *>(p.loc)[token];
}

// P: a type of the pieces that rows and distances are made of. Index: one that counts all pieces.
template <typename P, typename Index> INLINE void store(const store_kv &p) {
  const Index pieces = static_cast<Index>(p.row_bytes / static_cast<long long>(sizeof(P))),
              all = static_cast<Index>(p.tokens) * pieces, step = static_cast<Index>(gridDim.x) * THREADS;
  for (Index i = static_cast<Index>(blockIdx.x) * THREADS + threadIdx.x; i < all; i += step) {
    const Index token = i / pieces;
    const long long at = static_cast<long long>(i - token * pieces) * static_cast<long long>(sizeof(P)),
                    slot = slot_of(p, static_cast<long long>(token));
    if (slot < 0 || slot >= p.slots)
      continue;
    const long long from = static_cast<long long>(token) * p.pitch + at, to = slot * p.cache_pitch + at;
    const P k = *reinterpret_cast<const P *>(static_cast<const char *>(p.k) + from);
    const P v = *reinterpret_cast<const P *>(static_cast<const char *>(p.v) + from);
    *reinterpret_cast<P *>(static_cast<char *>(p.k_cache) + to) = k;
    *reinterpret_cast<P *>(static_cast<char *>(p.v_cache) + to) = v;
  }
}

KERNEL(store_16, store_kv) {
  store<vec16, unsigned>(p);
}
KERNEL(store_8, store_kv) {
  store<unsigned long long, unsigned long long>(p);
}
