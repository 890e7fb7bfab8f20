"""From options to a prediction: reads the model and the card they name, and writes the chart."""

from whichwall.analyze.predict import predict
from whichwall.analyze.predict_setting import Options, contexts, setting
from whichwall.schemas.prediction import Prediction


def prediction(options: Options) -> Prediction:
    """Return what the options ask for, its chart written.

    Raises:
        UsageError: options that contradict each other, the model or the card.
        InputError: a file or a run is not what was expected.
    """
    asked, curves = setting(options), contexts(options)
    found = predict(asked)
    if options.chart is not None:
        # Altair and what reads runs take a second to load, which a table need not wait for.
        from whichwall.analyze.predict_chart import write_chart

        write_chart(options.chart, asked, found.memory, curves, options.measured)
    return found
