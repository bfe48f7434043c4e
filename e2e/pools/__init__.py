"""The whole product on the stage: pools that a real operator brings up, asked as users and attackers would."""
