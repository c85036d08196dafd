"""What a world is and what happens in it: instances, clients, jobs, trouble."""
