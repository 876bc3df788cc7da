"""Everything that knows pytest."""
