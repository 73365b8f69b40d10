// What is done to each number by itself, memory passed through once: activations and their gradients; dropout.
#include "activation.h"

void activation_forward(const float *x, float *out, long count, int which, int threads) {
    long whole = count / LANES * LANES;
    vec slope;
#pragma omp parallel for num_threads(threads) private(slope)
    for (long i = 0; i < whole; i += LANES) store(out + i, passing(load(x + i), which, &slope));
    store_some(out + whole, passing(load_some(x + whole, count - whole), which, &slope), count - whole);
}

// out = slope at x · outer: the gradient by x of what has the gradient `outer` by the activation.
void activation_backward(const float *x, const float *outer, float *out, long count, int which, int threads) {
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
