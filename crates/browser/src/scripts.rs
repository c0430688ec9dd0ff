//! The crate's own scripts. They run in an isolated world, with an element of the page as `this`.

pub(crate) const READY: &str = "function() {
    if (!(this instanceof Element)) return 'hidden';
    this.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    const box = this.getBoundingClientRect();
    if (!this.getClientRects().length || (!box.width && !box.height)) return 'hidden';
    if (this.matches(':disabled') || this.closest('[aria-disabled=true]')) return 'disabled';
    return 'ready';
}";
/// Waits for the next rendered frame. Hidden pages render none, so the wait ends after 100 ms.
pub(crate) const NEXT_FRAME: &str = "function() {
    return new Promise(done => { requestAnimationFrame(() => done()); setTimeout(done, 100); });
}";
pub(crate) const IN_LINE: &str = "function(hit) {
    const up = node => node.parentNode || node.host;
    for (let node = hit; node; node = up(node)) if (node === this) return true;
    for (let node = this; node; node = up(node)) if (node === hit) return true;
    for (let node = hit; node; node = up(node)) {
        if (node.nodeName === 'LABEL' && (node.control === this || node.contains(this))) return true;
    }
    return false;
}";
pub(crate) const TAKE_FIELD: &str = "function() {
    const kinds = ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'];
    const none = ['checkbox', 'radio', 'button', 'submit', 'reset', 'file', 'image', 'hidden'];
    if (this.matches(':disabled')) return 'disabled';
    if (this.readOnly) return 'readonly';
    const isInput = this.nodeName === 'INPUT';
    if (isInput && none.includes(this.type)) return 'none';
    if (isInput && kinds.includes(this.type)) return 'set';
    if (isInput || this.nodeName === 'TEXTAREA') { this.focus(); this.select(); return 'field'; }
    if (this.isContentEditable) {
        this.focus();
        const range = document.createRange();
        range.selectNodeContents(this);
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        return 'field';
    }
    const inner = this.querySelector('input,textarea');
    return inner ? 'inner' : 'none';
}";
pub(crate) const SET_VALUE: &str = "function(value) {
    this.focus();
    this.value = value;
    this.dispatchEvent(new Event('input', {bubbles: true}));
    this.dispatchEvent(new Event('change', {bubbles: true}));
    return this.value === value;
}";
pub(crate) const HOLDS: &str = "function() {
    const secret = this.type === 'password';
    const value = this.isContentEditable ? this.innerText : String(this.value ?? '');
    return {secret, value: secret ? 'x'.repeat(value.length) : value.slice(0, 100000)};
}";
pub(crate) const CONCEAL: &str = "function() {
    this.style.setProperty('-webkit-text-security', 'disc', 'important');
}";
pub(crate) const FIELD_KIND: &str = "function() {
    if (this.nodeName === 'SELECT') return {kind: 'select'};
    if (this.nodeName === 'INPUT' && ['checkbox', 'radio'].includes(this.type)) return {kind: 'check', on: this.checked};
    const role = this.getAttribute('role');
    if (['checkbox', 'radio', 'switch'].includes(role)) return {kind: 'check', on: this.getAttribute('aria-checked') === 'true'};
    return {kind: 'text'};
}";
pub(crate) const SELECT: &str = "function(values) {
    if (this.nodeName !== 'SELECT') return {result: 'other'};
    if (this.matches(':disabled')) return {result: 'disabled'};
    if (!this.multiple && values.length !== 1) return {result: 'single'};
    const options = [...this.options];
    const chosen = [];
    for (const value of values) {
        const option = options.find(o => o.value === value) || options.find(o => o.label.trim() === value.trim());
        if (!option) return {result: 'missing', value, options: options.slice(0, 30).map(o => o.label)};
        chosen.push(option);
    }
    this.focus();
    for (const option of options) option.selected = chosen.includes(option);
    this.dispatchEvent(new Event('input', {bubbles: true}));
    this.dispatchEvent(new Event('change', {bubbles: true}));
    return {result: 'set'};
}";
