"""What can be learned, one file a task: examples, batch, loss, prediction, score. A new task is one line here."""

from regard.tasks.captioning import Captioning
from regard.tasks.classification import Classification
from regard.tasks.image_text import ImageText, Matching
from regard.tasks.language_modeling import LanguageModeling
from regard.tasks.masked_language import MaskedLanguage
from regard.tasks.picture_questions import PictureQuestions, Pointing
from regard.tasks.tagging import Tagging
from regard.tasks.translation import Translation

TASKS = {
    "translation": Translation,
    "language": LanguageModeling,
    "masked": MaskedLanguage,
    "classification": Classification,
    "tagging": Tagging,
    "captioning": Captioning,
    "image-text": ImageText,
    "matching": Matching,
    "picture-questions": PictureQuestions,
    "pointing": Pointing,
}
