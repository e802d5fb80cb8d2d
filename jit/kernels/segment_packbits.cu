// Bit i of a segment of y is whether byte i of that segment of x is not 0, the first in the lowest bit; a segment begins
// with a byte of its own, and the bits behind its last one are 0.
//
// Where segments begin is known on the device only: each gets the same number of blocks, a thread a byte of y at a time.
constexpr int THREADS = 256;
#include <elements.cuh>

// Eight bytes, 0 or 1 each, to eight bits: the multiplication puts byte i to bit 56 + i, and nothing else there.
INLINE unsigned eight(unsigned long long bytes) {
  const unsigned long long rest = 0x7f7f7f7f7f7f7f7full;
  const unsigned long long ones = (((bytes & rest) + rest) | bytes) >> 7 & 0x0101010101010101ull; // of what is not 0
  return static_cast<unsigned>(ones * 0x0102040810204080ull >> 56);
}

KERNEL(packbits_all, packbits) {
  const int each = p.blocks_of_segment; // of which the grid is a multiple
  for (int segment = blockIdx.x / each; segment < p.segments; segment += gridDim.x / each) {
    const long long first = p.from[segment], end = p.from[segment + 1], to = p.to[segment];
    if (first < 0 || end > p.x_size || to < 0)
      continue;
    for (long long i = static_cast<long long>(blockIdx.x % each) * THREADS + threadIdx.x;
         first + i * 8 < end && to + i < p.y_size; i += static_cast<long long>(each) * THREADS) {
      const unsigned char *from = p.x + first + i * 8;
      unsigned byte = 0;
      if (first + i * 8 + 8 <= end && reinterpret_cast<unsigned long long>(from) % 8 == 0)
        byte = eight(*reinterpret_cast<const unsigned long long *>(from));
      else
        for (int bit = 0; bit < 8 && first + i * 8 + bit < end; bit++)
          byte |= static_cast<unsigned>(from[bit] != 0) << bit;
      p.y[to + i] = static_cast<unsigned char>(byte);
    }
  }
}
