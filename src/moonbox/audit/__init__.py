"""The audit trail: records of what scripts did, and where they are kept."""
