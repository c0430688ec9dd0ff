# Runs the requests that arrive on descriptor 3, one JSON object per line, and answers on 4 in the same format. The
# code prints to 1 and 2. Exits when descriptor 3 is closed.
def _haft_main():
    import ast, base64, builtins, io, json, linecache, os, signal, sys, threading, traceback, types

    asked, answers = os.dup(3), os.dup(4)
    printed = os.dup(2)
    for number in (asked, answers, printed):
        os.set_inheritable(number, False)
    os.close(3)
    os.close(4)
    own, most_text, most_images = os.getpid(), 40_000, 8
    running, state = threading.Event(), {"images": 0, "nonce": ""}

    def send(message):
        data = (json.dumps(message) + "\n").encode("ascii", "replace")
        view = memoryview(data)
        while view:
            view = view[os.write(answers, view):]

    def cut(text):
        if len(text) <= most_text:
            return text
        half = most_text // 2
        return f"{text[:half]}\n[… {len(text) - most_text} characters left out …]\n{text[-half:]}"

    def interrupt(*_):
        if running.is_set() and os.getpid() == own:
            raise KeyboardInterrupt

    def show_png(data):
        state["images"] += 1
        if state["images"] <= most_images:
            send({"nonce": state["nonce"], "image": base64.b64encode(data).decode()})

    def show_figure(figure):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", bbox_inches="tight")
        show_png(buffer.getvalue())

    def show_figures():
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers is None:
            return
        for manager in helpers.Gcf.get_all_fig_managers():
            show_figure(manager.canvas.figure)
        helpers.Gcf.destroy_all()

    def as_picture(value):
        """Shows a value as an image; returns False if it is not an image."""
        if isinstance(value, (bytes, bytearray)) and bytes(value[:4]) in (b"\x89PNG", b"GIF8", b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe1"):
            show_png(bytes(value))
            return True
        if type(value).__module__.startswith("matplotlib.") and hasattr(value, "savefig"):
            show_figure(value)
            helpers = sys.modules.get("matplotlib._pylab_helpers")
            if helpers is not None:
                for manager in helpers.Gcf.get_all_fig_managers():
                    if manager.canvas.figure is value:
                        helpers.Gcf.destroy(manager.num)
            return True
        draw = None if isinstance(value, type) else getattr(value, "_repr_png_", None)
        data = draw() if callable(draw) else None
        if isinstance(data, tuple):
            data = data[0]
        if isinstance(data, (bytes, bytearray)):
            show_png(bytes(data))
            return True
        return False

    def display(*values):
        """Shows values: figures and images as images, others as text."""
        for value in values:
            if not as_picture(value):
                print(cut(repr(value)))

    class Figures:
        """An import hook: figures that matplotlib would show in a window are sent as images."""

        def __init__(self, loader=None):
            self.loader = loader

        def find_spec(self, name, path=None, target=None):
            if name != "matplotlib.pyplot":
                return None
            from importlib.machinery import PathFinder
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Figures(spec.loader)
            return spec

        def __getattr__(self, name):
            return getattr(self.loader, name)

        def exec_module(self, module):
            self.loader.exec_module(module)
            module.show = lambda *_, **__: show_figures()

    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, display=display)
    sys.modules["__main__"] = main
    sys.argv = [""]
    sys.meta_path.insert(0, Figures())
    # There is no display, neither here nor for processes that the code starts.
    os.environ.setdefault("MPLBACKEND", "Agg")
    # matplotlib prints a warning if it cannot store its caches in the home directory.
    if not os.path.exists(os.path.expanduser("~/.config/matplotlib/matplotlibrc")):
        temporary = os.environ.get("TMPDIR", "/tmp")
        os.environ.setdefault("MPLCONFIGDIR", os.path.join(temporary, "matplotlib"))
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
        stream.reconfigure(write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)

    def run(code, name):
        """Runs the code; returns the value of its last expression."""
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = ast.parse(code, name, "exec")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        def go(node, mode):
            compiled = compile(node, name, mode, flags)
            result = eval(compiled, main.__dict__)
            if compiled.co_flags & 0x80:
                import asyncio
                loop = state.get("loop")
                if loop is None or loop.is_closed():
                    loop = state["loop"] = asyncio.new_event_loop()
                    asyncio.set_event_loop(loop)
                result = loop.run_until_complete(result)
            return result
        go(tree, "exec")
        return None if last is None else go(ast.Expression(last.value), "eval")

    def report(error, name):
        if isinstance(error, SyntaxError) and error.filename == name:
            return cut("".join(traceback.format_exception_only(type(error), error)))
        lines = traceback.TracebackException.from_exception(error, limit=-30)
        frames = [frame for frame in lines.stack if frame.filename != "<string>"]
        lines.stack = traceback.StackSummary.from_list(frames)
        return cut("".join(lines.format()))

    def serve(request, number):
        answer, name = {"nonce": request["nonce"], "done": True}, f"<repl-{number}>"
        state.update(images=0, nonce=request["nonce"])
        try:
            running.set()
            try:
                value = run(request["code"], name)
                if value is not None:
                    main.__dict__["_"] = value
                    if not as_picture(value):
                        answer["value"] = cut(repr(value))
                show_figures()
            finally:
                running.clear()
        except SystemExit:
            raise
        except BaseException as error:
            try:
                answer["error"] = report(error, name)
            except BaseException as second:
                answer["error"] = f"{type(error).__name__} (and its traceback cannot be written: {type(second).__name__})"
            answer["interrupted"] = isinstance(error, KeyboardInterrupt)
        if os.getpid() != own:
            os._exit(0)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        answer["left_out"] = max(0, state["images"] - most_images)
        os.write(printed, request["mark"].encode())
        send(answer)

    signal.signal(signal.SIGINT, interrupt)
    send({"ready": True})
    lines, number = open(asked, "rb"), 0
    for line in lines:
        number += 1
        serve(json.loads(line), number)
    os._exit(0)


_haft_main()
