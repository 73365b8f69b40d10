// What all attention shares: softmax.
#pragma once
#include "simd.h"
#include <math.h>

// Scores become weights that sum to 1, or 0 where nothing may be seen. There is room for a whole vector at the end.
static inline void softmax(float *scores, long count) {
    for (long s = count; s % SIMD_WIDTH; s++) scores[s] = -INFINITY;
    vec best = broadcast(-INFINITY), sum = {};
    for (long s = 0; s < count; s += SIMD_WIDTH) best = max_vec(load(scores + s), best);
    float top = reduce_max(best);
    if (top == -INFINITY) {
        for (long s = 0; s < count; s++) scores[s] = scores[s] == -INFINITY ? 0 : NAN; // what is damaged stays so
        return;
    }
    for (long s = 0; s < count; s += SIMD_WIDTH) {
        vec weights = exp_vec(load(scores + s) - top);
        store(scores + s, weights);
        sum += weights;
    }
    vec share = broadcast(1 / reduce_sum(sum));
    for (long s = 0; s < count; s += SIMD_WIDTH) store(scores + s, load(scores + s) * share);
}
