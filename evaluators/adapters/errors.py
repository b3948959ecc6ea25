"""Why a judge call brought no whole reply. What it did or cost at the other end is unknown.

JudgeCallError
├── PromptTooLargeError    it was not sent
├── ConnectionFailedError  no connection, or one that broke
│   └── NotConnectedError        no connection: nothing was sent
│       └── PrivateAddressError  the host is at an address that is not to be called
├── TimedOutError          no whole reply in time
│   └── NotConnectedInTimeError  not even a connection: nothing was sent
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
    """A judge call brought no whole reply; its message is the text of its class by default.

    Args:
        message: another one.
        status: the HTTP status, if one came.
    """

    was_sent = True
    """Whether anything of the request may have left; if not, the other end cannot have seen it."""

    def __init__(self, message: str = "", status: int | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").partition("\n")[0])
        self.status = status


class PromptTooLargeError(JudgeCallError):
    """The prompt is larger than the declared most, and was not sent."""

    was_sent = False


class ConnectionFailedError(JudgeCallError):
    """There was no connection, or it broke."""


class NotConnectedError(ConnectionFailedError):
    """There was no connection, so nothing was sent."""

    was_sent = False


class PrivateAddressError(NotConnectedError):
    """The host has a private address, which is not to be called."""


class TimedOutError(JudgeCallError):
    """There was no whole reply in time."""


class NotConnectedInTimeError(TimedOutError):
    """There was no connection in time, so nothing was sent."""

    was_sent = False


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
