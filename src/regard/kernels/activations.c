// What is done to each number by itself, memory passed through once: activations that let a share of each number pass,
// and their gradients; dropout.
#include "vectors.h"

#define SLOPE 0.7978845608f // √(2/π)
#define CUBE 0.044715f

INLINE vec sigmoid(vec z) {
    vec power = exponential((vec)((ints)z | (int32_t)0x80000000)); // e^-|z|
    return choose(z < 0, power, all(1)) / (1 + power);
}

// The share Φ(x) of a normal distribution below x, right to 1e-7 (Abramowitz & Stegun 1964, 7.1.26), and its density.
INLINE vec below(vec x, vec *density) {
    vec size = (vec)((ints)x & 0x7fffffff);
    vec power = exponential(x * x * -0.5f), t = 1 / (1 + 0.3275911f * 0.70710678f * size);
    vec beyond = 0.5f * power * t *
                 (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    *density = power * 0.3989422804f;
    return choose(x < 0, beyond, 1 - beyond);
}

enum { GELU, GELU_TANH, SWISH }; // as regard.kernels has them

// x · share(x), and its slope: GELU's share is Φ(x); by its tanh form sigmoid(2u) with u = √(2/π) (x + 0.044715 x³);
// swish's sigmoid(x).
INLINE vec passing(vec x, int which, vec *slope) {
    vec share, change;
    if (which == GELU) {
        share = below(x, &change);
    } else {
        vec inner = which == SWISH ? x : 2 * SLOPE * (x + CUBE * x * x * x);
        vec steepness = which == SWISH ? all(1) : 2 * SLOPE * (1 + 3 * CUBE * x * x);
        share = sigmoid(inner);
        change = share * (1 - share) * steepness;
    }
    *slope = share + x * change;
    return x * share;
}

// The last numbers, fewer than a vector, with zeros behind them.
INLINE vec load_some(const float *from, long count) {
    float room[LANES] = {0};
    memcpy(room, from, count * sizeof(float));
    return load(room);
}

INLINE void store_some(float *to, vec numbers, long count) {
    float room[LANES];
    store(room, numbers);
    memcpy(to, room, count * sizeof(float));
}

void activate(const float *x, float *out, long count, int which, int threads) {
    long whole = count / LANES * LANES;
    vec slope;
#pragma omp parallel for num_threads(threads) private(slope)
    for (long i = 0; i < whole; i += LANES) store(out + i, passing(load(x + i), which, &slope));
    store_some(out + whole, passing(load_some(x + whole, count - whole), which, &slope), count - whole);
}

// out = slope at x · outer: the gradient by x of what has the gradient `outer` by the activation.
void activation_gradient(const float *x, const float *outer, float *out, long count, int which, int threads) {
    long whole = count / LANES * LANES, rest = count - whole;
    vec slope;
#pragma omp parallel for num_threads(threads) private(slope)
    for (long i = 0; i < whole; i += LANES) {
        passing(load(x + i), which, &slope);
        store(out + i, slope * load(outer + i));
    }
    passing(load_some(x + whole, rest), which, &slope);
    store_some(out + whole, slope * load_some(outer + whole, rest), rest);
}

typedef uint32_t bits __attribute__((vector_size(4 * LANES), aligned(4)));

// Each bit of the result depends on each bit of the input: multiplications and shifts in turn.
INLINE bits mixed(bits x) {
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// out[i] is x[i] · scale where chance is at least `dropped` (of 2^32), else 0. Chance is a function of i and two numbers,
// so the way back finds the same places without a mask being kept.
void dropout(const float *x, float *out, long count, uint32_t one, uint32_t other, uint32_t dropped, float scale,
             int threads) {
    bits lanes;
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane;
    long whole = count / LANES * LANES;
#pragma omp parallel for num_threads(threads)
    for (long i = 0; i < count; i += LANES) {
        bits chance = mixed(mixed((lanes + (uint32_t)i) ^ one) + other);
        ints kept = chance >= dropped;
        if (i < whole) store(out + i, choose(kept, load(x + i) * scale, all(0)));
        else store_some(out + i, choose(kept, load_some(x + i, count - i) * scale, all(0)), count - i);
    }
}
