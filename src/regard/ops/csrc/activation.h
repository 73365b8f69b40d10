// Activation functions and their derivatives.
#pragma once
#include "simd.h"

#define SQRT_2_OVER_PI 0.7978845608f
#define CUBE 0.044715f

enum { GELU, GELU_TANH, SWISH, RELU, NONE }; // as in ops/activation.py

INLINE vec sigmoid(vec z) {
    vec e = exp_vec((vec)((ivec)z | (int32_t)0x80000000)); // e^-|z|
    return blend(z < 0, e, broadcast(1)) / (1 + e);
}

INLINE vec tanh_vec(vec x) { // absolute error 1e-7
    ivec sign = (ivec)x & (int32_t)0x80000000;
    vec e = exp_vec((vec)((ivec)(2 * x) | (int32_t)0x80000000)); // e^-2|x|
    return (vec)((ivec)((1 - e) / (1 + e)) | sign);
}

// The normal distribution function Φ(x), error 1e-7 (Abramowitz & Stegun 1964, 7.1.26), and its density.
INLINE vec normal_cdf(vec x, vec *density) {
    vec size = abs_vec(x);
    vec e = exp_vec(x * x * -0.5f), t = 1 / (1 + 0.3275911f * 0.70710678f * size);
    vec tail = 0.5f * e * t *
               (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    *density = e * 0.3989422804f;
    return blend(x < 0, tail, 1 - tail);
}

// x · gate(x), and its derivative. The gate of GELU is Φ(x); of its tanh form sigmoid(2u) with
// u = √(2/π) (x + 0.044715 x³); of swish sigmoid(x). RELU has no derivative here: only products use it.
INLINE vec activation(vec x, int kind, vec *derivative) {
    vec gate, gate_derivative;
    if (kind == RELU) {
        *derivative = blend(x > 0, broadcast(1), broadcast(0));
        return blend(x < 0, broadcast(0), x);
    }
    if (kind == GELU) {
        gate = normal_cdf(x, &gate_derivative);
    } else {
        vec inner = kind == SWISH ? x : 2 * SQRT_2_OVER_PI * (x + CUBE * x * x * x);
        vec inner_derivative = kind == SWISH ? broadcast(1) : 2 * SQRT_2_OVER_PI * (1 + 3 * CUBE * x * x);
        gate = sigmoid(inner);
        gate_derivative = gate * (1 - gate) * inner_derivative;
    }
    *derivative = gate + x * gate_derivative;
    return x * gate;
}
