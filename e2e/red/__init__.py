"""One small patch per defence, each taken in turn out of a copy of the checkout: a named test must go red.

A test that was never red shows nothing. `make red` sees each of them red, again and again as the code changes.

To add a defence, put `defences/NAME.patch` there, and nothing else:

    Defence: one sentence about what holds.
    Test: tests/unit/folder/test_file.py::test_that_goes_red
    Level: stage

    ...the output of `git diff -U1` for a change that takes just this defence out of the product's code...

There may be several lines `Test:`; one of the tests has to go red. `Level: stage` is for tests that need the stage, its
API or real engines; without it the test is a fast one. To bring up to date a patch that no longer applies, make its
change by hand in the code, `git diff -U1` it into the file, and take the change back.
"""
