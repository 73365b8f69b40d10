"""`regard info`: what a model folder contains."""

from regard.cli.app import AsJson, ModelFolder, app
from regard.printing import print_json, show_facts


@app.command()
def info(model: ModelFolder, as_json: AsJson = False) -> None:
    """Show the contents of a model folder: kind, size, settings, files. Verifies every file.

    Examples:

    `regard info runs/demo`

    `regard info path/to/gpt2 --json`
    """
    from regard.tasks.describe import describe_folder

    facts = describe_folder(model)
    if as_json:
        print_json(facts)
    else:
        show_facts(facts)
