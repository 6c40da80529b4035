mod alone;
mod rules;
mod shares;
mod world;
