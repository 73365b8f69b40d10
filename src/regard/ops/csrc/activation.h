// Activations that let a share of each number pass, and their slopes.
#pragma once
#include "simd.h"

#define SLOPE 0.7978845608f // √(2/π)
#define CUBE 0.044715f

enum { GELU, GELU_TANH, SWISH, RELU, NONE }; // as in ops/activation.py

INLINE vec sigmoid(vec z) {
    vec power = exp_vec((vec)((ivec)z | (int32_t)0x80000000)); // e^-|z|
    return blend(z < 0, power, broadcast(1)) / (1 + power);
}

// The share Φ(x) of a normal distribution below x, right to 1e-7 (Abramowitz & Stegun 1964, 7.1.26), and its density.
INLINE vec below(vec x, vec *density) {
    vec size = abs_vec(x);
    vec power = exp_vec(x * x * -0.5f), t = 1 / (1 + 0.3275911f * 0.70710678f * size);
    vec beyond = 0.5f * power * t *
                 (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    *density = power * 0.3989422804f;
    return blend(x < 0, beyond, 1 - beyond);
}

// x · share(x), and its slope: GELU's share is Φ(x); by its tanh form sigmoid(2u) with u = √(2/π) (x + 0.044715 x³);
// swish's sigmoid(x).
INLINE vec passing(vec x, int which, vec *slope) {
    vec share, change;
    if (which == RELU) {
        *slope = blend(x > 0, broadcast(1), broadcast(0));
        return blend(x < 0, broadcast(0), x);
    }
    if (which == GELU) {
        share = below(x, &change);
    } else {
        vec inner = which == SWISH ? x : 2 * SLOPE * (x + CUBE * x * x * x);
        vec steepness = which == SWISH ? broadcast(1) : 2 * SLOPE * (1 + 3 * CUBE * x * x);
        share = sigmoid(inner);
        change = share * (1 - share) * steepness;
    }
    *slope = share + x * change;
    return x * share;
}
