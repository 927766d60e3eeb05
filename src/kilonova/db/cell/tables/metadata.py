"""The catalogue of the cell database."""

import sqlalchemy as sa

METADATA = sa.MetaData()
