mod alone;
mod reserve;
mod rules;
mod shares;
mod world;
