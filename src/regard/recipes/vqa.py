"""Questions about pictures, from a ViLBERT that has seen some: of the built-in scenes, or of a folder.

    regard train vqa --from runs/vilbert -o runs/answers
    regard train vqa --from runs/vilbert -o runs/judge data.ask=statements
    regard train vqa --from runs/vilbert -o runs/pointer data.ask=phrases
    regard train vqa --from runs/vilbert -o runs/finder data.ask=captions
    regard train vqa easy_vqa/data -o runs/easy

A folder is as the package easy-vqa has it: answers.txt, train/ and test/, each with questions.json and images/. Its
pictures have no boxes: they are seen as cells, so a model to begin from must be one that sees cells too.

Measured, seed 1, of one core:
- from the model of `regard train vilbert`: 2,000 steps (602,461 questions at 570 a second, 18 minutes) answer 92.0 % of
  3,000 questions about 500 held-out scenes: counts 99.9 %, presence 99.7 %, traits 90.7 % (shape) to 98.9 % (size). How
  two things stand to each other is not learned by then: 46 %, of yes and no;
- easy_vqa/data, from nothing: 1,500 steps (115,064 questions at 255 a second, 8 minutes) answer 98.6 % of the 9,673
  test questions: 97.6 % of "what", 99.0 % of yes and no.
- retrieval, three seeds, 300 steps over 2,000 scenes (data.ask=captions data.scenes=2000 training.steps=300
  training.gradient_accumulation=2 --seeds 3): the right of 100 held-out scenes is found for its caption in 78.0 ± 1.0 %
  of cases from that one pretrained model, in 10.3 ± 2.9 % from nothing; the right caption in 78.0 ± 6.2 %, and 10.7 ±
  2.9 %.
"""

from pathlib import Path

from regard.models.vilbert import SeeingConfig, ViLBERTForQuestionAnsweringConfig
from regard.tasks.recipe import Given, Prepared, Recipe, Run
from regard.tasks.vision_language.fine_tuning import encoder_with
from regard.tasks.vision_language.question_folder import prepare_folder
from regard.tasks.vision_language.questions import PictureQuestionsConfig
from regard.tasks.vision_language.scene_data import QuestionDataConfig, prepare_questions
from regard.training.loop import TrainingConfig


def settings(given: Given) -> Run:
    config = encoder_with(ViLBERTForQuestionAnsweringConfig, given)
    fresh = given.start is None
    if given.paths and fresh:
        config = config.model_copy(update={"seeing": SeeingConfig(patch=16, cells=4, inner=256)})
    return Run(
        model=config,
        task=PictureQuestionsConfig(),
        data=QuestionDataConfig(),
        training=TrainingConfig(
            steps=1500 if given.paths else 2000,
            max_tokens=1024,
            gradient_accumulation=2
            if given.paths
            else 4,  # of a batch all questions are of one length, and so of one kind
            optimizer="muon",
            learning_rate=1e-3,
            warmup=100,
            schedule="linear",
            evaluate_every=1000,
            evaluate_on=10_000,
            checkpoint_every=500,
        ),
    )


def prepare(run: Run, given: Given, tokenizer_file: Path) -> Prepared:
    make = prepare_folder if given.paths else prepare_questions
    return make(run, given, tokenizer_file)


RECIPE = Recipe(
    "vqa",
    settings,
    prepare,
    "what color is the circle ?",
    without_data="questions about the built-in scenes",
    starts=True,
)
