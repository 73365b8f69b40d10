// Dropout without a stored mask.
#include "simd.h"

typedef uint32_t bits __attribute__((vector_size(4 * SIMD_WIDTH), aligned(4)));

// Each bit of the result depends on each bit of the input: multiplications and shifts in turn.
INLINE bits mixed(bits x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// out[i] is x[i] · scale where chance is at least `dropped` (of 2^32), else 0. Chance is a function of i and two numbers,
// so the way back finds the same places without a mask being kept.
void dropout(const float *x, float *out, long count, uint32_t one, uint32_t other, uint32_t dropped, float scale,
             int threads) {
    bits lanes;
    for (int lane = 0; lane < SIMD_WIDTH; lane++) lanes[lane] = lane;
    long whole = count / SIMD_WIDTH * SIMD_WIDTH;
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < count; i += SIMD_WIDTH) {
        bits chance = mixed(mixed((lanes + (uint32_t)i) ^ one) + other);
        ivec kept = chance >= dropped;
        if (i < whole) store(out + i, blend(kept, load(x + i) * scale, broadcast(0)));
        else store_partial(out + i, blend(kept, load_partial(x + i, count - i) * scale, broadcast(0)), count - i);
    }
}
