// Softmax, shared by both attention kernels.
#pragma once
#include "simd.h"
#include <math.h>

// Scores become weights that sum to 1, or NaN if one is NaN or all are -inf: damage stays visible. `scores` has room
// for full vectors.
static inline void softmax(float *scores, long count) {
    for (long s = count; s % SIMD_WIDTH; s++) scores[s] = -INFINITY;
    vec maximum = broadcast(-INFINITY), sum = {};
    for (long s = 0; s < count; s += SIMD_WIDTH) maximum = max_vec(load(scores + s), maximum);
    float highest = reduce_max(maximum);
    for (long s = 0; s < count; s += SIMD_WIDTH) {
        vec weights = exp_vec(load(scores + s) - highest);
        store(scores + s, weights);
        sum += weights;
    }
    vec factor = broadcast(1 / reduce_sum(sum));
    for (long s = 0; s < count; s += SIMD_WIDTH) store(scores + s, load(scores + s) * factor);
}
