// What all attention shares: softmax.
#pragma once
#include "simd.h"
#include <math.h>

// Scores become weights that sum to 1, or 0 where nothing may be seen. There is room for a whole vector at the end.
static inline void softmax(float *scores, long count) {
    for (long s = count; s % LANES; s++) scores[s] = -INFINITY;
    vec best = all(-INFINITY), sum = {};
    for (long s = 0; s < count; s += LANES) best = larger(load(scores + s), best);
    float top = largest_of(best);
    if (top == -INFINITY) {
        for (long s = 0; s < count; s++) scores[s] = scores[s] == -INFINITY ? 0 : NAN; // what is damaged stays so
        return;
    }
    for (long s = 0; s < count; s += LANES) {
        vec weights = exponential(load(scores + s) - top);
        store(scores + s, weights);
        sum += weights;
    }
    vec share = all(1 / sum_of(sum));
    for (long s = 0; s < count; s += LANES) store(scores + s, load(scores + s) * share);
}
