"""What the stores on SQL databases need of a database; all that differs from one to the other is behind this."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
Row: TypeAlias = tuple[Any, ...]
Select: TypeAlias = tuple[str, Parameters]
Result = TypeVar("Result")

PAGE = 4096  # about what a change adds to a log of pages
SMALL = 4 * PAGE


class Session(Protocol):
    """A transaction, or a look without one.

    What is locked stays locked until the transaction has ended; in a database in which a transaction excludes all
    others from the beginning, locking does nothing.
    """

    locking: str  # at the end of a select: lock its rows
    by_key: str  # behind a table: find its rows by its primary key, and look at no others

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        """What a select finds."""

    def rows_of_each(self, statement: str, many: Iterable[Parameters]) -> list[Row]:
        """What a select finds with each of the parameters, one after the other."""

    def gather(self, *statements: Select) -> list[list[Row]]:
        """What each of some statements finds, asked for at once; one that changes something finds nothing."""

    def count(self, statement: str, parameters: Parameters = ()) -> int:
        """Change rows; how many."""

    def insert(self, statement: str, *many: Parameters) -> list[int]:
        """Add rows; the id that each was given."""

    def change(self, statement: str, *many: Parameters) -> None:
        """Change rows, with each of the parameters; perhaps not before something is read, or the transaction ends."""

    def body_ids(self, places: Sequence[int]) -> Sequence[int]:
        """Ids for the bodies of new runs, which begin at these places."""

    def dropping(self, receipts: Sequence[int]) -> list[Select]:
        """Statements that delete these receipts with what they hold, and look at no others."""

    def lock_catalogue(self) -> None:
        """Nobody else adds topics or subscribes groups."""

    def lock_groups(self, names: Sequence[str]) -> None:
        """Nobody else claims for these groups, or moves them."""


class Database(Protocol):
    def write(self, work: Callable[[Session], Result], size: int = SMALL) -> Result:
        """Do the work in a transaction, from the beginning again if others were in its way, and commit it.

        size: about how many bytes it adds to the database's log.
        """

    def read(self, work: Callable[[Session], Result]) -> Result:
        """Do the work without a transaction: each select sees what is committed by then."""

    def close(self) -> None:
        """A second call does nothing."""


def row(session: Session, statement: str, parameters: Parameters = ()) -> Row | None:
    """The first that a select finds."""
    found = session.rows(statement, parameters)
    return found[0] if found else None
