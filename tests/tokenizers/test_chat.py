"""Chat templates: rendered as Hugging Face renders them, and unable to do harm."""

import pytest

from regard.errors import InputError
from regard.tokenizers.chat import apply_chat_template

# In the manner of SmolLM2's: a system message of its own when the conversation has none.
TEMPLATE = """\
{% for message in messages %}
    {% if loop.first and message['role'] != 'system' %}
{{ bos_token }}<|im_start|>system
You help.<|im_end|>
    {% endif %}
<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""
TALK = [{"role": "user", "content": "Hi <there> é"}, {"role": "assistant", "content": "Hello"}]


def failure(template: str, messages=TALK) -> str:
    with pytest.raises(InputError) as caught:
        apply_chat_template(template, messages)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_conversation():
    opening = "<s><|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nHi <there> é<|im_end|>\n"
    assert apply_chat_template(TEMPLATE, TALK[:1], bos_token="<s>") == f"{opening}<|im_start|>assistant\n"
    assert apply_chat_template(TEMPLATE, TALK, bos_token="<s>", add_generation_prompt=False) == (
        f"{opening}<|im_start|>assistant\nHello<|im_end|>\n"
    )


def test_as_hugging_face_renders_it():
    from transformers.utils.chat_template_utils import render_jinja_template

    template = TEMPLATE + "{{ messages | tojson }}{{ messages | tojson(indent=2) }}{{ eos_token }}"
    (theirs,), _ = render_jinja_template(
        [TALK], chat_template=template, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
    )
    assert apply_chat_template(template, TALK, bos_token="<s>", eos_token="</s>") == theirs


def test_tokens_that_are_not_there_are_nothing():
    assert apply_chat_template("[{{ bos_token }}{{ eos_token }}]", []) == "[]"


def test_the_date():
    assert len(apply_chat_template("{{ strftime_now('%Y-%m-%d') }}", [])) == 10


def test_what_a_template_refuses_is_the_users_mistake():
    said = failure("{{ raise_exception('Roles must\nalternate') }}")
    assert said == "the chat template says: Roles must alternate"


def test_a_broken_template_is_one_line():
    assert failure("a\n{% if %}").startswith("chat template, line 2: ")
    assert failure("{{ messages[0].content + 1 }}").startswith("chat template: ")
    assert failure("{{ 1 // 0 }}").startswith("chat template: ")


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ messages.clear() }}",
        "{{ raise_exception.__globals__.json }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{% include 'x' %}",
    ],
)
def test_a_template_reaches_nothing_and_changes_nothing(template):
    messages = [dict(message) for message in TALK]
    assert failure(template, messages)
    assert messages == TALK


@pytest.mark.parametrize(
    ("template", "bound"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "took more than 2 s"),
        ("{{ '%0999999999d' % 1 }}", "memory"),
        ("{{ messages | tojson(indent=10**9) }}", "memory"),
        ("{{ 'x' * 10**7 }}", "wrote more than 4,000,000 bytes"),
    ],
)
def test_a_template_without_bound_ends_with_an_error_and_the_next_one_renders(template, bound):
    assert bound in failure(template)
    assert apply_chat_template("{{ messages[0].content }}", TALK) == "Hi <there> é"
