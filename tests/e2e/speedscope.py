# SPDX-License-Identifier: Apache-2.0
"""Speedscope's own application and schema: what they make of a file."""

import json
from collections import Counter

from known import needs, node_peers

SPEEDSCOPE = r"""
const {chromium} = require('playwright-core');
const fs = require('fs'), path = require('path');
const [program, ...files] = process.argv.slice(1);
(async () => {
    const browser = await chromium.launch({executablePath: program, args: ['--no-sandbox', '--disable-gpu']});
    const context = await browser.newContext({acceptDownloads: true, viewport: {width: 1280, height: 800}});
    await context.route(url => url.protocol !== 'file:' && url.protocol !== 'data:' && url.protocol !== 'blob:',
                        route => route.abort());
    const results = [];
    for (const file of files) {
        const page = await context.newPage(), errors = [];
        page.on('pageerror', error => errors.push(error.message));
        page.on('console', message => message.type() === 'error' && errors.push(message.text()));
        page.on('dialog', dialog => { errors.push('dialog: ' + dialog.message()); dialog.dismiss(); });
        await page.goto('file://' + path.join(path.dirname(require.resolve('speedscope/package.json')),
                                              'dist/release/index.html'));
        await page.setInputFiles('#file', file);
        /* The welcome page goes when a profile is shown. */
        await page.waitForFunction(() => !document.body.innerText.includes('Hi there!'), null, {timeout: 20000});
        const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Control+s')]);
        results.push({errors, file: JSON.parse(fs.readFileSync(await download.path(), 'utf8'))});
        await page.close();
    }
    await browser.close();
    console.log(JSON.stringify(results));
})().catch(error => { console.error(error); process.exit(1); });
"""


def speedscope_app(*paths):
    """What the application has understood of each file, as it saves it itself."""
    chromium = needs(node_peers.chromium)
    results = json.loads(node_peers.node(SPEEDSCOPE, chromium, *paths))
    for result in results:
        assert not result["errors"], result["errors"]
    return [result["file"] for result in results]


def intervals(file, profile):
    """[(begin, end, stack)] of a profile of begins and ends, gaps left out; a stack is (name, file, line), root first."""
    frames = file["shared"]["frames"]
    found, stack, last = [], [], None
    for event in profile["events"]:
        if stack and event["at"] > last:
            names = tuple((f["name"], f.get("file", ""), f.get("line")) for f in stack)
            if found and found[-1][1:] == (last, names):
                found[-1] = (found[-1][0], event["at"], names)
            else:
                found.append((last, event["at"], names))
        last = event["at"]
        if event["type"] == "O":
            stack.append(frames[event["frame"]])
        else:
            assert stack.pop() == frames[event["frame"]]
    assert not stack
    return found


def evented_stacks(file, profile):
    """Counter of stacks with their values."""
    stacks = Counter()
    for begin, end, stack in intervals(file, profile):
        stacks[stack] += end - begin
    return stacks


SCHEMA = r"""
const fs = require('fs'), Ajv = require('ajv');
const schema = JSON.parse(fs.readFileSync(require.resolve('speedscope/dist/release/file-format-schema.json'), 'utf8'));
const ajv = new Ajv({strict: false});
const [file] = process.argv.slice(1);
const valid = ajv.compile(schema);
if (!valid(JSON.parse(fs.readFileSync(file, 'utf8')))) { console.error(valid.errors); process.exit(1); }
"""


def assert_is_of_schema(path):
    needs(node_peers.node_modules)
    node_peers.node(SCHEMA, path)
