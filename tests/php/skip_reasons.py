"""PHPUnit's JUnit file does not say why a test was skipped, its TeamCity log does: this puts the reasons together.

    skip_reasons.py JUNIT TEAMCITY
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

junit, teamcity = sys.argv[1:]
with open(teamcity, encoding="utf-8") as log:
    reasons = re.findall(r"^##teamcity\[testIgnored name='.*?' message='(.*?)' details=", log.read(), re.M)
tree = ElementTree.parse(junit)
skipped = list(tree.iter("skipped"))
if len(skipped) != len(reasons):
    sys.exit(f"skip_reasons.py: {len(skipped)} tests were skipped, and {len(reasons)} reasons given")
for element, reason in zip(skipped, reasons):
    element.set("message", reason)
tree.write(junit, encoding="utf-8", xml_declaration=True)
for reason in sorted(set(reasons)):
    print(f"not tested: {reason} ({reasons.count(reason)} tests)")
