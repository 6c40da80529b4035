//! Disk models.
