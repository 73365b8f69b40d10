#include "simd.h"
#include <math.h>

// Cross-entropy of rows of logits with a share `smoothing` of the target spread over all words. The logits become the
// gradient by them: the probability of each word, less what the target gives it. A target below 0 is no lesson: no loss,
// no gradient.
void cross_entropy(float *logits, long rows, long words, const int64_t *targets, float smoothing, float *losses,
                   int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        float *at = logits + row * words;
        losses[row] = 0;
        if (targets[row] < 0) {
            memset(at, 0, words * sizeof(float));
            continue;
        }
        vec best = broadcast(-INFINITY), sum = {}, every = {};
        long w = 0;
        for (; w + SIMD_WIDTH <= words; w += SIMD_WIDTH) {
            vec some = load(at + w);
            best = max_vec(some, best);
            every += some;
        }
        float top = reduce_max(best), rest = 0, mean = reduce_sum(every), right = at[targets[row]];
        for (; w < words; w++) {
            top = at[w] > top ? at[w] : top;
            mean += at[w];
        }
        mean /= words;
        for (w = 0; w + SIMD_WIDTH <= words; w += SIMD_WIDTH) {
            vec powers = exp_vec(load(at + w) - top);
            store(at + w, powers);
            sum += powers;
        }
        for (; w < words; w++) rest += at[w] = expf(at[w] - top);
        float total = reduce_sum(sum) + rest, share = 1 / total, spread = smoothing / words;
        for (w = 0; w + SIMD_WIDTH <= words; w += SIMD_WIDTH) store(at + w, load(at + w) * share - spread);
        for (; w < words; w++) at[w] = at[w] * share - spread;
        at[targets[row]] -= 1 - smoothing;
        losses[row] = top + logf(total) - (1 - smoothing) * right - (smoothing ? smoothing * mean : 0);
    }
}
