"""The participant kit for Python. participant.sql and rules.py are the files to read first; `wsgi.Participant` and
`asgi.Participant` are what a service uses."""
