"""Why a judge call brought no whole reply. What it did or cost at the other end is unknown.

JudgeCallError
├── PromptTooLargeError    it was not sent
├── ConnectionFailedError  no connection, or one that broke
├── TimedOutError          no whole reply in time
├── RedirectedError        the endpoint points elsewhere, and nothing follows
├── RateLimitedError       status 429
├── RequestRefusedError    another status from 400 to 499
├── EndpointFailedError    any other status but 200
├── ReplyTooLargeError     more bytes than are read
├── UnreadableReplyError   not the JSON of the chat protocol
└── KeyInReplyError        the reply repeats the API key

An evaluation keeps the name of the class alone. No message holds a text or a key.
"""


class JudgeCallError(Exception):
    """A judge call brought no whole reply; its message is the text of its class by default."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or ""))


class PromptTooLargeError(JudgeCallError):
    """The prompt is larger than the declared most, and was not sent."""


class ConnectionFailedError(JudgeCallError):
    """There was no connection, or it broke."""


class TimedOutError(JudgeCallError):
    """There was no whole reply in time."""


class RedirectedError(JudgeCallError):
    """The endpoint redirects; name its real address instead."""


class RateLimitedError(JudgeCallError):
    """The endpoint answered 429."""


class RequestRefusedError(JudgeCallError):
    """The endpoint refused the request."""


class EndpointFailedError(JudgeCallError):
    """The endpoint failed."""


class ReplyTooLargeError(JudgeCallError):
    """The reply is larger than the declared most."""


class UnreadableReplyError(JudgeCallError):
    """The reply is not JSON of the chat protocol."""


class KeyInReplyError(JudgeCallError):
    """The reply repeats the API key, so it cannot be kept."""
