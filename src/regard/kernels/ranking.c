// The best of long rows of logits (B, V), and their totals, each row read once from memory.
#include "vectors.h"
#include <math.h>

// log Σ e^logit of each row. NaN where a logit is NaN; infinite where one is.
void log_totals(const float *logits, long rows, long words, long stride, float *totals, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *at = logits + row * stride;
        vec best = all(-INFINITY), sum = {};
        long w = 0;
        for (; w + LANES <= words; w += LANES) best = larger(load(at + w), best);
        float top = largest_of(best), rest = 0;
        for (long i = w; i < words; i++) top = at[i] > top ? at[i] : top;
        float base = isfinite(top) ? top : 0;
        for (w = 0; w + LANES <= words; w += LANES) sum += exponential(load(at + w) - base);
        for (; w < words; w++) rest += expf(at[w] - base);
        totals[row] = base + logf(sum_of(sum) + rest);
    }
}

// The `count` best of each row, best first, and where they stand; of equal ones the first. There are at least `count`.
void top(const float *logits, long rows, long words, long stride, long count, float *best, int64_t *places,
         int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < rows; row++) {
        const float *at = logits + row * stride;
        float *found = best + row * count;
        int64_t *where = places + row * count;
        long have = 0;
        for (long start = 0; start < words; start += LANES) {
            long stop = smaller(start + LANES, words);
            if (have == count && start + LANES <= words && largest_of(load(at + start)) <= found[count - 1]) continue;
            for (long w = start; w < stop; w++) {
                if (have == count && !(at[w] > found[count - 1])) continue;
                long place = have < count ? have++ : count - 1;
                for (; place > 0 && at[w] > found[place - 1]; place--) {
                    found[place] = found[place - 1];
                    where[place] = where[place - 1];
                }
                found[place] = at[w];
                where[place] = w;
            }
        }
    }
}
