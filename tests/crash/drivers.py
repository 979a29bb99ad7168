"""What the service under load makes its boxes with: settings, environment, and what of it is to be seen on the host."""

from boxlite import Library


class Namespace:
    name = "namespace"
    target = "namespace"
    roles = ()  # of its own programs
    saves = False  # boxes outlive their workers

    def __init__(self):
        self.settings = {}
        self.env = {}

    def processes(self):
        """Live ones that the service does not name: {pid: name}."""
        return {}

    def boxes(self):
        """What somebody else has of them."""
        return []

    def close(self):
        pass


class Boxlite(Namespace):
    """Over the double of its library (tests/drivers/fake_boxlite)."""

    name = "boxlite"
    target = "boxlite"
    roles = ("boxlite",)
    server = False
    options = {}

    def __init__(self):
        self.library = Library()
        driver, image, options = self.library.config(self.server, **self.options).splitlines()
        self.settings = dict(line.split(": ", 1) for line in (driver, image, options))
        self.env = {"SBX_TEST_KVM": "/dev/null"}

    def processes(self):
        return self.library.processes()

    def boxes(self):
        return self.library.boxes()

    def close(self):
        self.library.remove()


class BoxliteServer(Boxlite):
    """Its boxes are a server's: nothing ends them but who removes them."""

    target = "boxlite-server"
    server = True


class BoxliteDetached(Boxlite):
    """Its boxes outlive their workers, and are saved."""

    target = "boxlite-detached"
    options = {"detach": "true"}
    saves = True


DRIVERS = {"namespace": Namespace, "boxlite": Boxlite, "boxlite-server": BoxliteServer, "boxlite-detached": BoxliteDetached}
