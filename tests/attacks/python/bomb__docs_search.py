# attack: a search for a huge text
# error: tool
# line: 5
# message: docs.search expects at most 500 characters, got 5000000
docs.search("word " * 1000000)
