"""MultiCheckList: behavioural tests from templates, in many languages (XTREME-R, sections 3.4 and 5.1, appendix F)."""
