// Cross-entropy with label smoothing of logits (rows, V), which become the gradient by them: softmax less the smoothed
// target. A negative target is ignored: no loss, no gradient.
#include "simd.h"
#include <math.h>

void cross_entropy(float *logits, long rows, long vocab_size, const int64_t *targets, float smoothing, float *losses,
                   int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        float *at = logits + row * vocab_size;
        losses[row] = 0;
        if (targets[row] < 0) {
            memset(at, 0, vocab_size * sizeof(float));
            continue;
        }
        vec maximum = broadcast(-INFINITY), sum = {}, all_sum = {};
        long w = 0;
        for (; w + SIMD_WIDTH <= vocab_size; w += SIMD_WIDTH) {
            vec some = load(at + w);
            maximum = max_vec(some, maximum);
            all_sum += some;
        }
        float highest = reduce_max(maximum), rest = 0, mean = reduce_sum(all_sum), at_target = at[targets[row]];
        for (; w < vocab_size; w++) {
            highest = at[w] > highest ? at[w] : highest;
            mean += at[w];
        }
        mean /= vocab_size;
        for (w = 0; w + SIMD_WIDTH <= vocab_size; w += SIMD_WIDTH) {
            vec exponentials = exp_vec(load(at + w) - highest);
            store(at + w, exponentials);
            sum += exponentials;
        }
        for (; w < vocab_size; w++) rest += at[w] = expf(at[w] - highest);
        float total = reduce_sum(sum) + rest, factor = 1 / total, smoothed = smoothing / vocab_size;
        for (w = 0; w + SIMD_WIDTH <= vocab_size; w += SIMD_WIDTH) store(at + w, load(at + w) * factor - smoothed);
        for (; w < vocab_size; w++) at[w] = at[w] * factor - smoothed;
        at[targets[row]] -= 1 - smoothing;
        losses[row] = highest + logf(total) - (1 - smoothing) * at_target - (smoothing ? smoothing * mean : 0);
    }
}
