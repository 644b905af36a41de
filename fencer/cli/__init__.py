"""The command line: parse, wire, render. No rule of fencing lives here.

`main` is the entrance, `wire` builds the real parts, one module holds each command; `render` and `output`
write what they found, for people and for programs.
"""
