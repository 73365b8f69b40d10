// @ts-check
// The questions of the lectures. Every wrong answer says what one did to get it.

/** @typedef {{text: string, right?: boolean, why: string}} Choice */
/** @typedef {{id: string, deck: string, title: string, question: string, choices: Choice[]}} Quiz */

/** @type {Quiz[]} */
export const QUIZZES = [
  {
    id: "thinking", deck: "002", title: "the output of “Thinking”",
    question: "The query of *Thinking* has the scores 112 and 96 with the keys of *Thinking* and *Machines*; keys are 64 wide. What is its output?",
    choices: [
      { text: "0.5 v₁ + 0.5 v₂", why: "That is the mean of the values: the scores were not used at all. Attention without queries and keys would do this." },
      { text: "0.54 v₁ + 0.46 v₂", why: "0.54 is 112 / (112 + 96): each score divided by their sum. Softmax takes exp first, and the scores are divided by √64 = 8 before." },
      { text: "0.88 v₁ + 0.12 v₂", right: true, why: "112 / 8 = 14 and 96 / 8 = 12; softmax(14, 12) = 1 / (1 + e⁻²) = 0.88 and 0.12." },
      { text: "0.12 v₁ + 0.88 v₂", why: "The weights are right and stand in the wrong order: the larger score, 112, is that of *Thinking* itself, so v₁ has 0.88." },
    ],
  },
  {
    id: "root", deck: "004", title: "why √d",
    question: "Queries and keys have d = 64 independent numbers with mean 0 and variance 1. What is the variance of their dot product, and what does one divide by?",
    choices: [
      { text: "1; nothing has to be divided", why: "Each product has variance 1, and there are 64 of them: variances of independent numbers add up." },
      { text: "64; divide by 64", why: "The variance is 64, but dividing by c divides the variance by c². Dividing by 64 leaves a variance of 1/64: softmax would be nearly uniform." },
      { text: "64; divide by √64 = 8", right: true, why: "64 / 8² = 1: the scores keep the variance 1, softmax does not saturate, and its gradient does not vanish." },
      { text: "8; divide by √8", why: "8 is the standard deviation, the root of the variance 64." },
    ],
  },
  {
    id: "crossing", deck: "002", title: "encoder and decoder",
    question: "What does the decoder of the Transformer get from the encoder?",
    choices: [
      { text: "Each decoder layer the output of the encoder layer at the same height", why: "That would be a ladder. In the Transformer every decoder layer attends to the output of the *last* encoder layer." },
      { text: "Every decoder layer the output of the last encoder layer, as keys and values", right: true, why: "Queries come from the decoder, keys and values from the top of the encoder, in every decoder layer." },
      { text: "The first decoder layer alone the last state of the encoder", why: "That is the RNN encoder-decoder of 2014, with one vector for the whole sentence: the bottleneck that attention removed." },
      { text: "Every decoder layer the output of the last encoder layer, as queries", why: "Then there would be an output for each source token. The queries are the decoder's: one output for each target token." },
    ],
  },
  {
    id: "rows", deck: "004", title: "weights that sum to one",
    question: "Why are attention weights positive, with a sum of 1 in each row?",
    choices: [
      { text: "So that the output is a weighted mean: it stays among the values, whatever their number", right: true, why: "With one more token the output does not grow, and each weight can be read as a share." },
      { text: "Because queries and keys have length 1", why: "They are not normalized; scores may be any number. Softmax makes the weights positive." },
      { text: "So that the columns sum to 1 as well", why: "They do not: one key may get weight from every query, another from none." },
      { text: "Because otherwise there is no gradient", why: "A sum without softmax has a gradient too; linear attention does that." },
    ],
  },
  {
    id: "mask", deck: "002", title: "masking",
    question: "A causal mask hides the future. Where is it applied?",
    choices: [
      { text: "The weights after softmax are multiplied by 0", why: "Then the rest of a row sums to less than 1: the hidden keys have already taken their share of the softmax." },
      { text: "The scores before softmax are multiplied by 0", why: "A score of 0 is not small: exp(0) = 1, so the future still gets weight. Try it in the view Masks." },
      { text: "The scores before softmax become −∞", right: true, why: "exp(−∞) = 0: hidden keys have weight 0, and the rest of the row sums to 1." },
      { text: "The future tokens are removed from the input", why: "One pass trains all positions at once: what is the future of one position is the past of another." },
    ],
  },
  {
    id: "cache", deck: "002", title: "the KV cache",
    question: "A model has 12 layers of width 768, and numbers of 4 bytes. How much memory does its KV cache take for one text of 1,024 tokens?",
    choices: [
      { text: "3 MiB", why: "1,024 × 768 × 4 bytes: of one layer the keys alone." },
      { text: "36 MiB", why: "That is keys *or* values of the 12 layers; the cache keeps both." },
      { text: "72 MiB", right: true, why: "2 (keys and values) × 12 layers × 1,024 tokens × 768 × 4 bytes = 72 MiB; the number of heads does not matter, since they share the width." },
      { text: "864 MiB", why: "Multiplied by 12 heads once more: the heads are parts of the 768, not more of them." },
    ],
  },
];
