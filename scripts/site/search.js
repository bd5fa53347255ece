/* SPDX-License-Identifier: MIT
 *
 * The search of the site: sections that have all words, those with one in the heading first. The index is a script,
 * which also loads from file:// addresses, and is asked for when somebody first types. */
'use strict';
(() => {
    const root = document.currentScript.dataset.root;
    const box = document.querySelector('input[type=search]'), list = document.getElementById('found');
    const most = 20, around = 80;
    let asked = false;

    const item = (row, words) => {
        const [address, page, heading, text] = row;
        const link = document.createElement('a'), said = document.createElement('p'), li = document.createElement('li');
        const from = Math.max(0, text.toLowerCase().indexOf(words[0]) - around), at = from && text.indexOf(' ', from);
        const cut = text.slice(at).length > 3 * around ? text.slice(at, at + 3 * around).replace(/\S*$/, '...') : text.slice(at);
        link.href = root + '/' + address;
        link.textContent = page + ': ' + heading;
        said.textContent = (at ? '...' : '') + cut;
        li.append(link, said);
        return li;
    };
    const show = () => {
        const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
        const rows = words.length && window.searchIndex ? window.searchIndex
            .map(row => [row, row[2].toLowerCase(), row.join(' ').toLowerCase()])
            .filter(([, , all]) => words.every(word => all.includes(word)))
            .sort((a, b) => words.some(w => b[1].includes(w)) - words.some(w => a[1].includes(w))) : [];
        list.replaceChildren(...rows.slice(0, most).map(([row]) => item(row, words)));
        if (words.length && !rows.length)
            list.append(Object.assign(document.createElement('li'), {
                textContent: window.searchIndex ? 'Nothing has all of these words.' : 'The index is being read ...'}));
        list.hidden = !words.length;
    };
    box.hidden = false;
    box.addEventListener('input', () => {
        if (!asked) {
            asked = true;
            document.head.append(Object.assign(document.createElement('script'), {
                src: root + '/search-index.js', onload: show}));
        }
        show();
    });
    document.addEventListener('keydown', event => {
        if (event.key === '/' && document.activeElement !== box) {
            event.preventDefault();
            box.focus();
        } else if (event.key === 'Escape') {
            box.value = '';
            show();
        }
    });
    list.addEventListener('click', event => {
        if (event.target.closest('a'))
            list.hidden = true;
    });
})();
