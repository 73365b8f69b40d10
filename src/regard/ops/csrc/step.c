// A decoding step as a program: a list of instructions over buffers that are there already, run in one call.
//
// The rows of a step are tokens of any sequences: one of each when decoding, many of one when reading a prompt. Row r
// is the token at positions[r] of the sequence in slots[r] of the KV cache, and attends to that slot up to itself.
// All threads run all instructions together and wait for each other after each.
#include "activation.h"
#include "linear.h"
#include "packed.h"
#include "softmax.h"
#include <math.h>
#include <omp.h>

enum { EMBED, PREPARE, LINEAR, ATTEND };      // as in ops/program.py
enum { NO_NORM, RMS_NORM, LAYER_NORM };       // what PREPARE does first
enum { GATED = 16 };                          // flag of an activation: of the first half, times the second
#define MAX_DOT_ROWS 8                        // rows from which the tiles of linear.c are faster than dot products

// What an instruction does is described at its function. Buffers (R, …) have room for all rows of a step.
typedef struct {
    int32_t op, norm, activation, bits, layout, is_last; // is_last: only the rows whose logits are wanted
    int64_t n, k, stride, heads, kv_heads, width, slots, capacity;
    float epsilon, scale;
    const float *in, *weight, *bias, *residual; // weight: of a norm or a float32 matrix
    const uint8_t *panels;                      // of a packed matrix
    float *out;
    rounded_block *rounded; // what PREPARE makes of its rows for packed matrices, if any reads them
    float *keys, *values;
    const float *cosine, *sine;
} instruction;

typedef struct {
    int64_t rows, wanted_rows, vocab_size, slots, capacity, max_rows, max_wanted;
    const int64_t *ids, *slot_of, *positions, *wanted; // (R,), and (wanted_rows,) numbers of rows
    float *workspace, *scores;                         // for all threads
    int64_t scores_size;                               // of one thread
} step;

INLINE packed_matrix matrix_of(const instruction *i) {
    return (packed_matrix){i->panels, i->n, i->k, (i->k + PACKED_BLOCK - 1) / PACKED_BLOCK, i->bits, i->layout};
}

// out[r] = scale · row ids[r] of an embedding matrix (float32 or packed), plus row positions[r] of `bias`, if any.
static void run_embed(const instruction *i, const step *s) {
    packed_matrix table = matrix_of(i);
#pragma omp for
    for (long r = 0; r < s->rows; r++) {
        float *to = i->out + r * i->k;
        if (i->panels) unpack_row(&table, s->ids[r], to);
        else memcpy(to, i->weight + s->ids[r] * i->k, i->k * sizeof(float));
        const float *position = i->bias ? i->bias + s->positions[r] * i->k : 0;
        for (long c = 0; c < i->k; c++) to[c] = to[c] * i->scale + (position ? position[c] : 0);
    }
}

// Mean and factor that norm a row.
static void find_norm(const instruction *i, const float *row, float *mean, float *factor) {
    vec total = {}, square = {};
    *mean = 0;
    if (i->norm == LAYER_NORM) {
        for (long c = 0; c < i->k; c += SIMD_WIDTH) total += load_partial(row + c, i->k - c);
        *mean = reduce_sum(total) / i->k;
    }
    for (long c = 0; c < i->k; c += SIMD_WIDTH) {
        vec centered = load_partial(row + c, i->k - c) - *mean;
        if (i->k - c < SIMD_WIDTH)
            for (long lane = i->k - c; lane < SIMD_WIDTH; lane++) centered[lane] = 0;
        square += centered * centered;
    }
    *factor = 1 / sqrtf(reduce_sum(square) / i->k + i->epsilon);
}

// out = f(norm(in)) for columns `from` to `to` of a row (K); the input of a GATED activation has 2K columns.
static void prepare_columns(const instruction *i, const float *in, float *out, long from, long to) {
    float mean = 0, factor = 1;
    vec derivative;
    if (i->norm != NO_NORM) find_norm(i, in, &mean, &factor);
    for (long c = from; c < to; c += SIMD_WIDTH) {
        long left = i->k - c;
        vec value = load_partial(in + c, left);
        if (i->norm != NO_NORM) {
            value = (value - mean) * factor;
            if (i->weight) value *= load_partial(i->weight + c, left);
            if (i->bias) value += load_partial(i->bias + c, left);
        }
        int kind = i->activation & (GATED - 1);
        if (kind != NONE) value = activation(value, kind, &derivative);
        if (i->activation & GATED) value *= load_partial(in + i->k + c, left);
        store_partial(out + c, value, left);
    }
}

// What a product reads: rows normed, activated, and, for a packed matrix, rounded.
static void run_prepare(const instruction *i, const step *s) {
    long rows = i->is_last ? s->wanted_rows : s->rows, blocks = (i->k + PACKED_BLOCK - 1) / PACKED_BLOCK;
    long parts = rows < omp_get_num_threads() ? min_long(omp_get_num_threads(), blocks) : 1;
    long columns = i->activation & GATED ? 2 * i->k : i->k;
    rounded_rows rounded = {rows, i->rounded};
#pragma omp for collapse(2)
    for (long r = 0; r < rows; r++)
        for (long part = 0; part < parts; part++) {
            long from = blocks * part / parts, to = blocks * (part + 1) / parts;
            const float *in = i->in + (i->is_last ? s->wanted[r] : r) * columns;
            prepare_columns(i, in, i->out + r * i->k, from * PACKED_BLOCK, min_long(i->k, to * PACKED_BLOCK));
            if (i->rounded) round_blocks(i->out, i->k, &rounded, r, from, to);
        }
}

// out (R, N) = in Wᵀ + bias + residual; `residual` may be `out` itself. A row of both has `stride` numbers.
static void run_linear(const instruction *i, const step *s) {
    long rows = i->is_last ? s->wanted_rows : s->rows;
    if (i->panels) {
        packed_matrix w = matrix_of(i);
        rounded_rows x = {rows, i->rounded};
#pragma omp for
        for (long panel = 0; panel < (w.n + PANEL - 1) / PANEL; panel++)
            multiply_panel(&w, panel, &x, i->bias, i->residual, i->out, i->stride);
    } else if (rows < MAX_DOT_ROWS) {
#pragma omp for
        for (long row = 0; row < i->n; row++)
            for (long r = 0; r < rows; r++) {
                float value = dot_product(i->weight + row * i->k, i->in + r * i->k, i->k) + (i->bias ? i->bias[row] : 0);
                i->out[r * i->stride + row] = i->residual ? value + i->residual[r * i->stride + row] : value;
            }
    } else {
        int is_direct = !i->residual && i->stride == i->n;
        float *to = is_direct ? i->out : s->workspace, *workspace = s->workspace + (is_direct ? 0 : rows * i->n);
        linear_in_team(i->in, &i->weight, &i->bias, to, rows, 1, i->n, i->k, NONE, workspace);
#pragma omp barrier
        if (is_direct) return;
#pragma omp for collapse(2)
        for (long r = 0; r < rows; r++)
            for (long row = 0; row < i->n; row++) {
                long at = r * i->stride + row;
                i->out[at] = to[r * i->n + row] + (i->residual ? i->residual[at] : 0);
            }
    }
}

// Rotate the pairs (c, c + K/2) of a head.
static void rotate(float *head, long width, const float *cosine, const float *sine) {
    for (long c = 0; c < width / 2; c++) {
        float one = head[c], other = head[c + width / 2];
        head[c] = one * cosine[c] - other * sine[c];
        head[c + width / 2] = other * cosine[c] + one * sine[c];
    }
}

// out = Σ weights[s] · rows[s] for `vecs` vectors of contiguous rows; the sums stay in registers.
INLINE void weighted_vectors(const int vecs, const float *weights, const float *rows, long count, long width,
                             float *out) {
    vec even[4] = {}, odd[4] = {};
    for (long s = 0; s + 2 <= count; s += 2)
        UNROLL for (int v = 0; v < vecs; v++) {
            even[v] += weights[s] * load(rows + s * width + v * SIMD_WIDTH);
            odd[v] += weights[s + 1] * load(rows + (s + 1) * width + v * SIMD_WIDTH);
        }
    if (count % 2) UNROLL for (int v = 0; v < vecs; v++)
        even[v] += weights[count - 1] * load(rows + (count - 1) * width + v * SIMD_WIDTH);
    UNROLL for (int v = 0; v < vecs; v++) store(out + v * SIMD_WIDTH, even[v] + odd[v]);
}

static void weighted_rows(const float *weights, const float *rows, long count, long width, float *out) {
    long c = 0;
    for (; c + 4 * SIMD_WIDTH <= width; c += 4 * SIMD_WIDTH) weighted_vectors(4, weights, rows + c, count, width, out + c);
    for (; c + SIMD_WIDTH <= width; c += SIMD_WIDTH) weighted_vectors(1, weights, rows + c, count, width, out + c);
    for (; c < width; c++) {
        out[c] = 0;
        for (long s = 0; s < count; s++) out[c] += weights[s] * rows[s * width + c];
    }
}

// in (R, (heads + 2 kv_heads) · width): queries, keys and values. Rotated by position where there are angles; keys and
// values are put into the cache (slots, kv_heads, capacity, width); out (R, heads · width) is what the queries find.
static void run_attend(const instruction *i, const step *s) {
    long width = i->width, columns = (i->heads + 2 * i->kv_heads) * width, group = i->heads / i->kv_heads;
    float *scores = s->scores + omp_get_thread_num() * s->scores_size;
#pragma omp for collapse(2)
    for (long r = 0; r < s->rows; r++)
        for (long head = 0; head < i->heads + i->kv_heads; head++) {
            float *own = (float *)i->in + r * columns + head * width;
            long position = s->positions[r], angle = position * (width / 2);
            if (i->cosine) rotate(own, width, i->cosine + angle, i->sine + angle);
            if (head < i->heads) continue;
            long at = ((s->slot_of[r] * i->kv_heads + head - i->heads) * i->capacity + position) * width;
            memcpy(i->keys + at, own, width * sizeof(float));
            memcpy(i->values + at, own + i->kv_heads * width, width * sizeof(float));
        }
#pragma omp for collapse(2)
    for (long r = 0; r < s->rows; r++)
        for (long head = 0; head < i->heads; head++) {
            long visible = s->positions[r] + 1, from = s->slot_of[r] * i->kv_heads + head / group;
            const float *query = i->in + r * columns + head * width, *keys = i->keys + from * i->capacity * width;
            for (long p = 0; p < visible; p++) scores[p] = i->scale * dot_product(query, keys + p * width, width);
            softmax(scores, visible);
            weighted_rows(scores, i->values + from * i->capacity * width, visible, width,
                          i->out + (r * i->heads + head) * width);
        }
}

// Run a program; its logits are in the buffer of the last instruction. Returns OUT_OF_RANGE for an id, slot, position
// or row that does not exist.
int run_step(const instruction *program, long count, const step *s, int threads) {
    if (s->rows < 1 || s->rows > s->max_rows || s->wanted_rows < 0 || s->wanted_rows > s->max_wanted)
        return OUT_OF_RANGE;
    for (long r = 0; r < s->rows; r++)
        if (s->ids[r] < 0 || s->ids[r] >= s->vocab_size || s->slot_of[r] < 0 || s->slot_of[r] >= s->slots ||
            s->positions[r] < 0 || s->positions[r] >= s->capacity)
            return OUT_OF_RANGE;
    for (long r = 0; r < s->wanted_rows; r++)
        if (s->wanted[r] < 0 || s->wanted[r] >= s->rows) return OUT_OF_RANGE;
#pragma omp parallel num_threads(threads)
    for (long at = 0; at < count; at++) {
        const instruction *i = program + at;
        if (i->is_last && !s->wanted_rows) continue;
        if (i->op == EMBED) run_embed(i, s);
        else if (i->op == PREPARE) run_prepare(i, s);
        else if (i->op == LINEAR) run_linear(i, s);
        else run_attend(i, s);
    }
    return 0;
}
