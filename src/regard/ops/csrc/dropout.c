// Dropout without a stored mask.
#include "simd.h"

typedef uint32_t bits __attribute__((vector_size(4 * SIMD_WIDTH), aligned(4)));

// A hash: each bit of the result depends on each bit of the input (the finalizer of MurmurHash3).
INLINE bits hash(bits x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// out[i] = x[i] · scale where the hash of first + i and two seeds is at least `threshold`, else 0. The backward pass computes
// the same hashes, so no mask is stored.
void dropout(const float *x, float *out, long count, long first, uint32_t seed, uint32_t other_seed, uint32_t threshold,
             float scale, int threads) {
    bits lanes;
    for (int lane = 0; lane < SIMD_WIDTH; lane++) lanes[lane] = lane;
    long full = count / SIMD_WIDTH * SIMD_WIDTH;
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < count; i += SIMD_WIDTH) {
        bits random = hash(hash((lanes + (uint32_t)(first + i)) ^ seed) + other_seed);
        ivec kept = random >= threshold;
        if (i < full) store(out + i, blend(kept, load(x + i) * scale, broadcast(0)));
        else store_partial(out + i, blend(kept, load_partial(x + i, count - i) * scale, broadcast(0)), count - i);
    }
}
