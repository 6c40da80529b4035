mod alone;
mod cfq;
mod reserve;
mod rules;
mod shares;
mod world;
