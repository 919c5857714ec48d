"""Makes fixtures/ beside this file: a TensorFlow SavedModel and a TFLite model, small and with seeded weights.

Needs the package tensorflow (2.21 made what is committed), which no test needs: that is why the files are committed.
"""

import pathlib
import shutil

import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).resolve().parent / "fixtures"


class Classifier(tf.Module):
    def __init__(self):
        random = np.random.default_rng(7)
        self.kernel = tf.constant(random.standard_normal((3, 3, 3, 8)).astype(np.float32) * 0.3)
        self.weights = tf.constant(random.standard_normal((8, 10)).astype(np.float32) * 0.3)

    @tf.function(input_signature=[tf.TensorSpec([1, 16, 16, 3], tf.float32, name="image")])
    def __call__(self, image):
        features = tf.nn.relu(tf.nn.conv2d(image, self.kernel, strides=1, padding="SAME"))
        left = tf.nn.max_pool2d(features, 2, 2, "SAME")
        right = tf.nn.avg_pool2d(tf.nn.tanh(features), 2, 2, "SAME")
        return {"scores": tf.nn.softmax(tf.reduce_mean(left + right, axis=[1, 2]) @ self.weights)}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    module = Classifier()
    tf.saved_model.save(module, str(FOLDER / "saved_model"))
    (FOLDER / "saved_model" / "fingerprint.pb").unlink(missing_ok=True)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
    (FOLDER / "classifier.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    main()
