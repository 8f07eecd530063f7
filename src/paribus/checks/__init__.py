"""What is refused before anything runs: values that are right by themselves and cannot work together.

In come the frozen configurations of a command (`command`), each valid field by field. Out come problems: the path of a
field, what is wrong, and what would be right. All of them are found before the first is told, so that a user mends a
command once. Nothing is read but small files that the configuration names (`existing_tokenizer`), and nothing heavy is
imported: `paribus plan` asks the same questions.

What a stage alone can know, as the number of tokens of a corpus, is refused by the stage, as early as it is known:
docs/reliability.md lists that. What needs the machine, as a missing GPU, is asked in `pipeline/devices.py`.
"""
