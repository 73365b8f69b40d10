// The best of long rows of logits (B, V), and their totals, each row read once from memory.
#include "simd.h"
#include <math.h>

// log Σ e^logit of each row; NaN where a logit is NaN or +inf.
void logsumexp(const float *logits, long rows, long words, long stride, float *totals, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *at = logits + row * stride;
        vec best = broadcast(-INFINITY), sum = {};
        long w = 0;
        for (; w + SIMD_WIDTH <= words; w += SIMD_WIDTH) best = max_vec(load(at + w), best);
        float top = reduce_max(best), rest = 0;
        for (long i = w; i < words; i++) top = at[i] > top ? at[i] : top;
        float base = isfinite(top) ? top : 0; // of -inf alone the sum is 0, its log -inf
        for (w = 0; w + SIMD_WIDTH <= words; w += SIMD_WIDTH) sum += exp_vec(load(at + w) - base);
        for (; w < words; w++) rest += expf(at[w] - base);
        float total = reduce_sum(sum) + rest;
        totals[row] = base + logf(total);
    }
}

INLINE int above(float one, float other) { return other == other && !(one <= other); } // NaN is above all numbers
INLINE int none_above(vec numbers, float other) {
    return other != other || reduce_sum_ints(numbers <= broadcast(other)) == -SIMD_WIDTH;
}

// The `count` best of each row, best first, and where they stand; of equal ones the first; NaN above all, as torch has
// it. There are at least `count`. For few: each that comes in moves the others.
void topk(const float *logits, long rows, long words, long stride, long count, float *best, int64_t *places,
         int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *at = logits + row * stride;
        float *found = best + row * count;
        int64_t *where = places + row * count;
        long have = 0;
        for (long start = 0; start < words; start += SIMD_WIDTH) {
            long stop = min_long(start + SIMD_WIDTH, words);
            if (have == count && start + SIMD_WIDTH <= words && none_above(load(at + start), found[count - 1])) continue;
            for (long w = start; w < stop; w++) {
                if (have == count && !above(at[w], found[count - 1])) continue;
                long place = have < count ? have++ : count - 1;
                for (; place > 0 && above(at[w], found[place - 1]); place--) {
                    found[place] = found[place - 1];
                    where[place] = where[place - 1];
                }
                found[place] = at[w];
                where[place] = w;
            }
        }
    }
}
