// Top-k and logsumexp of logits (B, V).
#include "simd.h"
#include <math.h>

// log Σ e^logit of each row; NaN if a logit is NaN or +inf.
void logsumexp(const float *logits, long rows, long vocab_size, long stride, float *out, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *at = logits + row * stride;
        vec maximum = broadcast(-INFINITY), sum = {};
        long id = 0;
        for (; id + SIMD_WIDTH <= vocab_size; id += SIMD_WIDTH) maximum = max_vec(load(at + id), maximum);
        float highest = reduce_max(maximum), rest = 0;
        for (long i = id; i < vocab_size; i++) highest = at[i] > highest ? at[i] : highest;
        float base = isfinite(highest) ? highest : 0; // if all are -inf, the sum is 0 and its log -inf
        for (id = 0; id + SIMD_WIDTH <= vocab_size; id += SIMD_WIDTH) sum += exp_vec(load(at + id) - base);
        for (; id < vocab_size; id++) rest += expf(at[id] - base);
        float total = reduce_sum(sum) + rest;
        out[row] = base + logf(total);
    }
}

INLINE int above(float one, float other) { return other == other && !(one <= other); } // NaN is above all, as in torch
INLINE int none_above(vec logits, float other) {
    return other != other || reduce_sum_ints(logits <= broadcast(other)) == -SIMD_WIDTH;
}

// The k largest logits of each row and their ids, the largest first, of equal ones the first; 1 ≤ k ≤ vocab_size.
// Insertion into a sorted list: for small k.
void topk(const float *logits, long rows, long vocab_size, long stride, long k, float *values, int64_t *ids,
          int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *at = logits + row * stride;
        float *best = values + row * k;
        int64_t *best_ids = ids + row * k;
        long count = 0;
        for (long start = 0; start < vocab_size; start += SIMD_WIDTH) {
            long stop = min_long(start + SIMD_WIDTH, vocab_size);
            if (count == k && start + SIMD_WIDTH <= vocab_size && none_above(load(at + start), best[k - 1])) continue;
            for (long id = start; id < stop; id++) {
                if (count == k && !above(at[id], best[k - 1])) continue;
                long slot = count < k ? count++ : k - 1;
                for (; slot > 0 && above(at[id], best[slot - 1]); slot--) {
                    best[slot] = best[slot - 1];
                    best_ids[slot] = best_ids[slot - 1];
                }
                best[slot] = at[id];
                best_ids[slot] = id;
            }
        }
    }
}
